package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
)

// How a check ends.
const (
	checkOK   = "ok"
	checkWarn = "warn" // works, but an operator should know
	checkFail = "fail" // does not work
)

// finding is one line of the doctor.
type finding struct {
	Result string `json:"result"`
	What   string `json:"what"`
	Detail string `json:"detail"`
}

func doctorCommand(o *clientOptions) *cobra.Command {
	file := pluginFile{o: o}
	var files tlsFiles
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what could keep a host from working here", Args: cobra.NoArgs,
		Long: "Look at the data directory, the keys, the database, the disk, the clock, dead letters, the port, plugins.yaml, the certificate, the limits that this machine\noffers, and the host if one runs. Changes nothing. Exits with 1 if something does not work.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := slices.Concat(checkData(o.data), checkMasterKey(cmd.Context(), o), checkStorage(cmd.Context(), o.data), checkPlugins(cmd.Context(), &file), checkTLS(&files, time.Now()),
				[]finding{checkLimits(), checkSandbox(), checkClock(time.Now)}, checkHost(cmd.Context(), o))
			raw, err := json.Marshal(map[string]any{"checks": found})
			if err != nil {
				return fmt.Errorf("encode result: %w", err)
			}
			err = show(cmd, o, raw, func(w io.Writer, v struct{ Checks []finding }) {
				for _, f := range v.Checks {
					fmt.Fprintf(w, "%s\t%s\t%s\n", f.Result, f.What, clean(f.Detail))
				}
			})
			if err == nil && slices.ContainsFunc(found, func(f finding) bool { return f.Result == checkFail }) {
				return exitError(1)
			}
			return err
		},
	}
	file.add(cmd)
	files.add(cmd)
	o.masterKeyFlag(cmd)
	return cmd
}

// checkData looks at the data directory without taking it from a host.
func checkData(dir string) []finding {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := tryWrite(nearest(dir)); err != nil {
			return []finding{{checkFail, "data directory", dir + " is not there, nor can be made: " + err.Error()}}
		}
		return []finding{{checkWarn, "data directory", dir + " is not there yet: the first start makes it"}}
	case err != nil:
		return []finding{{checkFail, "data directory", err.Error()}}
	case !info.IsDir():
		return []finding{{checkFail, "data directory", dir + " is not a directory"}}
	}
	found := []finding{{checkOK, "data directory", dir}}
	if err := tryWrite(dir); err != nil {
		found[0] = finding{checkFail, "data directory", "not writable: " + err.Error()}
	}
	found = append(found, checkKey(dir))
	return append(found, checkModes(dir, info)...)
}

// nearest is the directory in which dir would be made.
func nearest(dir string) string {
	for {
		above := filepath.Dir(dir)
		if _, err := os.Stat(above); err == nil || above == dir {
			return above
		}
		dir = above
	}
}

// tryWrite makes a file in dir and removes it.
func tryWrite(dir string) error {
	probe, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// checkKey looks at the operator's key.
func checkKey(dir string) finding {
	const what = "admin key"
	_, err := auth.ReadKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return finding{checkWarn, what, filepath.Join(dir, auth.KeyFile) + " is not there: a start makes one"}
	}
	key, gone := os.Stat(filepath.Join(dir, auth.KeyFile))
	switch err := cmp.Or(err, gone); {
	case err != nil:
		return finding{checkFail, what, err.Error()}
	case key.Mode().Perm()&0o077 != 0:
		return finding{checkFail, what, fmt.Sprintf("mode %o, expected 600: others can read it", key.Mode().Perm())}
	}
	return finding{checkOK, what, fmt.Sprintf("mode %o", key.Mode().Perm())}
}

// kept are the files of a data directory that are for the host alone.
var kept = []string{sqlite.File, "attachments.key"}

// checkModes looks who else can read what the host keeps, and whether it is this
// user's: a host of the same user could not write it.
func checkModes(dir string, info fs.FileInfo) []finding {
	var found []finding
	if mode := info.Mode().Perm(); mode&0o066 != 0 { // plugins with users of their own pass through
		found = append(found, finding{checkWarn, "permissions", fmt.Sprintf("%s has mode %o, expected 700: others can look into it", dir, mode)})
	}
	for _, name := range kept {
		path := filepath.Join(dir, name)
		file, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			found = append(found, finding{checkFail, "permissions", err.Error()})
		case file.Mode().Perm()&0o077 != 0:
			found = append(found, finding{checkFail, "permissions", fmt.Sprintf("%s has mode %o, expected 600: others can read it", path, file.Mode().Perm())})
		case !ours(file):
			found = append(found, finding{checkWarn, "permissions", path + " is another user's: run this, and restores, as the user of the host"})
		}
	}
	if len(found) == 0 {
		found = []finding{{checkOK, "permissions", "what is kept here is for its owner alone"}}
	}
	return found
}

// checkPlugins reads plugins.yaml and checks every program.
func checkPlugins(ctx context.Context, file *pluginFile) []finding {
	if _, err := os.Stat(file.name); errors.Is(err, fs.ErrNotExist) {
		result := checkOK
		if file.name != config.DefaultPlugins {
			result = checkFail
		}
		return []finding{{result, "plugins", file.name + " is not there"}}
	}
	all, err := file.load(ctx)
	if err != nil {
		var found []finding
		for line := range strings.Lines(err.Error()) {
			found = append(found, finding{checkFail, "plugins", strings.TrimSpace(line)})
		}
		return found
	}
	found := []finding{{checkOK, "plugins", fmt.Sprintf("%s has %d", file.name, len(all))}}
	verdicts, err := verifyPlugins(all, nil, false, file.name)
	if err != nil {
		return append(found, finding{checkFail, "plugins", err.Error()})
	}
	for _, v := range verdicts {
		if v.OK {
			found = append(found, finding{checkOK, "program of " + v.Name, v.Found})
		} else {
			found = append(found, finding{checkFail, "program of " + v.Name, v.Reason})
		}
	}
	return found
}

// checkLimits says what bounds the memory of plugins here.
func checkLimits() finding {
	by, why := child.Limiter()
	switch {
	case by == "none":
		return finding{checkWarn, "memory limits of plugins", "not enforced: " + why}
	case why != "":
		return finding{checkOK, "memory limits of plugins", fmt.Sprintf("by %s, for each process (%s)", by, why)}
	}
	return finding{checkOK, "memory limits of plugins", "by " + by + ", for all processes of a plugin together"}
}

// doctorPatience bounds the question to a host.
const doctorPatience = 5 * time.Second

// checkHost asks the host, if one runs, whether it is ready and what holds its
// plugins: it may have been started where other limits are offered.
func checkHost(ctx context.Context, o *clientOptions) []finding {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(o.url, "/")+"/readyz", nil)
	if err != nil {
		return []finding{{checkFail, "host", err.Error()}}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return []finding{{checkWarn, "host", "none at " + o.url}, checkPort(ctx, req.URL)}
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // only to be shown
	if resp.StatusCode != http.StatusOK {
		return []finding{{checkFail, "host", o.url + " answers: " + strings.TrimSpace(string(text))}}
	}
	return slices.Concat([]finding{{checkOK, "host", o.url + " is ready"}}, checkServed(resp.TLS, o.url, time.Now()), checkRunning(ctx, o))
}

// checkPort says whether a host could listen where none answers.
func checkPort(ctx context.Context, u *url.URL) finding {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	at := net.JoinHostPort(u.Hostname(), port)
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", at)
	switch {
	case err == nil:
		_ = ln.Close()
		return finding{checkOK, "port", at + " is free"}
	case errors.Is(err, syscall.EADDRINUSE):
		return finding{checkFail, "port", at + " is taken by another program, or by a host that hangs"}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return finding{checkOK, "port", at + " is not of this machine: not tried"}
	}
	return finding{checkWarn, "port", err.Error()}
}

// checkRunning says of the running host's plugins what limits their memory, and
// which of them do not run; and of its adapters which have no platform.
func checkRunning(ctx context.Context, o *clientOptions) []finding {
	c, err := o.client()
	if err != nil {
		return []finding{{checkWarn, "host", "its plugins can't be asked for: " + err.Error()}}
	}
	return append(checkRunningPlugins(ctx, c), checkPlatforms(ctx, c)...)
}

func checkRunningPlugins(ctx context.Context, c *client) []finding {
	raw, err := c.all(ctx, "/plugins", "plugins")
	if err != nil {
		return []finding{{checkWarn, "host", "its plugins can't be asked for: " + err.Error()}}
	}
	var v struct{ Plugins []pluginView }
	if err := json.Unmarshal(raw, &v); err != nil {
		return []finding{{checkFail, "host", "its plugins: " + err.Error()}}
	}
	var found []finding
	for _, p := range v.Plugins {
		f := finding{checkOK, "plugin " + p.Name, p.State + ", " + heldBy(p)}
		switch p.State {
		case "running":
			if p.LimitBy == "none" || p.Sandbox != string(child.Full) {
				f.Result = checkWarn
			}
		case "disabled":
			f.Detail = p.State
		case "quarantined":
			f.Result, f.Detail = checkFail, p.State+": "+p.Reason
		default:
			f.Result, f.Detail = checkWarn, strings.TrimSuffix(p.State+": "+p.Reason, ": ")
		}
		found = append(found, f)
	}
	return found
}
