//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// pluginShown is all of a plugin that listings show.
type pluginShown struct {
	pluginView
	Command   []string
	Source    string
	SHA256    string
	ChannelID string     `json:"channel_id"`
	NextStart *time.Time `json:"next_start_at"`
}

// crew is a pit with the plugins that the operator's cases share, by what they
// are for.
type crew struct {
	*pit
	talk, calm, off, once, broken, stubborn, crafted plugin
	sum                                              string // of the program
}

func (c *crew) all() []plugin {
	return []plugin{c.talk, c.calm, c.off, c.once, c.broken, c.stubborn, c.crafted}
}

// Plugins through the command line and REST, all on one host. The cases follow
// each other: each leaves the plugins as it found them, but the last three.
func TestPlugins(t *testing.T) {
	t.Parallel()
	binary, err := hostileBinary()
	if err != nil {
		t.Fatal(err)
	}
	sum := sumOfFile(t, binary)
	const fragile = "restart: {backoff: 100ms, quarantine_after: 1}"
	c := &crew{
		talk:     plugin{name: "talk", mode: "ok", args: []string{"elsewhere=${HOME}"}, yaml: "sha256: " + sum},
		calm:     plugin{name: "calm", mode: "ok"},
		off:      plugin{name: "off", mode: "ok", yaml: "enabled: false"},
		once:     plugin{name: "once", mode: "exit3", args: []string{"once", "struck=" + filepath.Join(t.TempDir(), "struck")}, yaml: fragile},
		broken:   plugin{name: "broken", mode: "config-error", yaml: fragile},
		stubborn: plugin{name: "stubborn", mode: "ignore-term"},
		crafted:  plugin{name: "crafted", mode: "crafted"},
		sum:      sum,
	}
	c.pit = newPit(t, c.all())
	for _, s := range []struct {
		name string
		run  func(*crew, *testing.T)
	}{
		{"list", (*crew).lists},
		{"frames", (*crew).frames},
		{"logs", (*crew).logs},
		{"follow", (*crew).follows},
		{"disable", (*crew).disables},
		{"restart", (*crew).restarts},
		{"refused", (*crew).refusesOperations},
		{"doctor", (*crew).doctor},
		{"rest", (*crew).rest},
		{"errREST", (*crew).refusesRequests},
		{"errKey", (*crew).wantsKey},
		{"stopping", (*crew).staysReady},
		{"reload", (*crew).reloads},
		{"restartOfHost", (*crew).outlivesHost},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(c, t) })
	}
}

// The operator of a program that only opens a WebSocket reads what its author has to
// change, at once.
func TestPluginThatLacksTheWay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	writeFile(t, file, "plugins:\n  - {name: hello, command: ["+helloBinary+"]}\n")
	h := startHost(t, "--plugins", file)
	var row pluginRow
	eventually(t, "quarantine", func() bool {
		h.must(&row, "GET", "/plugins/hello", "")
		return row.State == "quarantined"
	})
	if !strings.Contains(row.Reason, "plugin.Main of github.com/pontoon-bridge/pontoon/sdk/plugin") || row.Restarts != 0 {
		t.Errorf("after %d restarts the reason is %q, expected the package to import at the first start", row.Restarts, row.Reason)
	}
}

func sumOfFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// home is a variable of the host's environment that plugins.yaml uses.
func (c *crew) home() string {
	for _, v := range slices.Backward(c.cmd.Env) {
		if value, ok := strings.CutPrefix(v, "HOME="); ok {
			return value
		}
	}
	c.t.Fatal("the host has no HOME")
	return ""
}

// shown is a plugin as `plugin list --json` has it.
func (c *crew) shown(name string) pluginShown {
	c.t.Helper()
	var list struct{ Plugins []pluginShown }
	c.json(&list, "plugin", "list")
	for _, p := range list.Plugins {
		if p.Name == c.full(name) {
			return p
		}
	}
	c.t.Fatalf("plugin list --json lacks %s", name)
	return pluginShown{}
}

var columns = regexp.MustCompile(`\s{2,}`)

func (c *crew) lists(t *testing.T) {
	running := c.running(t, "talk")
	c.until(t, wait, "broken", "quarantined", func(r pluginRow) bool { return r.State == "quarantined" })
	var p pluginShown
	eventually(t, "it is attached", func() bool { p = c.shown("talk"); return p.Health.Attached })
	if p.State != "running" || p.PID != running.Pid || p.Restarts != 0 || p.Reason != "" || !p.Pinned || p.SHA256 != c.sum || p.ChannelID == "" || p.Since == nil {
		t.Errorf("shown as %+v", p)
	}
	if p.Health.LastIn != nil || p.Health.LastSent != nil {
		t.Errorf("nothing was said yet, but health is %+v", p.Health)
	}
	if want := []string{c.program, "ok", "mark=" + c.mark, "elsewhere=${HOME}"}; !slices.Equal(p.Command, want) {
		t.Errorf("command %q, expected %q", p.Command, want)
	}
	if !strings.HasPrefix(p.Source, c.file+":") {
		t.Errorf("source %q, expected a line of %s", p.Source, c.file)
	}
	c.echoes(t, "talk", "hello")
	eventually(t, "its messages show", func() bool {
		p := c.shown("talk")
		return p.Health.LastIn != nil && p.Health.LastSent != nil
	})
	var one pluginShown
	c.must(&one, http.MethodGet, "/plugins/"+c.full("talk"), "")
	if one.PID != p.PID || !slices.Equal(one.Command, p.Command) || !one.Health.Attached {
		t.Errorf("alone it is %+v", one)
	}
	if p := c.shown("broken"); p.PID != 0 || p.Pinned || p.Health.Attached || !strings.Contains(p.Reason, "not today") {
		t.Errorf("broken is %+v", p)
	}
	if p := c.shown("off"); p.State != "disabled" || p.PID != 0 || !strings.Contains(p.Reason, p.Source+" says enabled: false") {
		t.Errorf("off is %+v", p)
	}
	for _, e := range c.all() {
		eventually(t, e.name+" is attached if it runs", func() bool { p := c.shown(e.name); return p.State != "running" || p.Health.Attached })
	}
	table := c.cli("plugin", "list")
	rows := lines(table)
	if len(rows) != 1+len(c.all()) || dirty(table) {
		t.Fatalf("found %q, expected a clean line for each plugin", table)
	}
	for i, e := range c.all() {
		cells := columns.Split(rows[i+1], 12)
		p := c.shown(e.name)
		if len(cells) != 12 || cells[0] != p.Name || cells[1] != p.State || cells[2] != pidText(p.PID) || cells[5] != fmt.Sprint(p.Health.Attached) ||
			cells[6] != p.Health.Platform.word() ||
			(cells[7] == "–") != (p.Health.LastIn == nil) || (cells[8] == "–") != (p.Health.LastSent == nil) || cells[9] != fmt.Sprint(p.Pinned) || cells[10] != cmp.Or(p.Sandbox, "–") {
			t.Errorf("line %q, expected %+v", rows[i+1], p)
		}
	}
	_, answer := c.request(http.MethodGet, "/plugins", "")
	for _, text := range []string{table, answer, c.cli("plugin", "list", "--json")} {
		for _, secret := range []string{c.home(), "port_file", c.path("port", "talk")} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is shown: %s", secret, text)
			}
		}
	}
}

// frames: those of a plugin are counted and kept like any other adapter's.
func (c *crew) frames(t *testing.T) {
	name := c.full("calm")
	c.running(t, "calm")
	type list struct {
		Frames []struct{ Direction, Type, Verdict string }
		Next   string `json:"next_cursor"`
	}
	shown := func() (a api.Adapter) {
		var list struct{ Adapters []api.Adapter }
		c.must(&list, http.MethodGet, "/adapters", "")
		for _, a := range list.Adapters {
			if a.Channel == name {
				return a
			}
		}
		return a
	}
	eventually(t, "it is attached, and knows it", func() bool { a := shown(); return a.Transport == "plugin" && a.FramesOut > 0 })
	before := shown()
	var was list
	c.json(&was, "frames", name)
	c.echoes(t, "calm", "hello canary")
	var after api.Adapter
	eventually(t, "its frames are kept, and counted alike", func() bool {
		var got list
		c.must(&got, http.MethodGet, "/channels/"+name+"/frames?cursor="+was.Next, "")
		in, out, said, answered, acked := uint64(0), uint64(0), false, false, false
		for _, f := range got.Frames {
			said = said || f.Direction == "in" && f.Type == "message" && f.Verdict == "accepted"
			answered = answered || f.Direction == "out" && f.Type == "send" && f.Verdict == "written"
			acked = acked || f.Direction == "in" && f.Type == "message_ack" // nothing comes behind it
			if f.Direction == "in" {
				in++
			} else {
				out++
			}
		}
		after = shown()
		return said && answered && acked && after.FramesIn-before.FramesIn == in && after.FramesOut-before.FramesOut == out
	})
	if after.RoundTripMS != nil {
		t.Errorf("answered a ping within %g ms before one was sent", *after.RoundTripMS)
	}
	holds(t, c.cli("frames", name), "hello canary", "echo: hello canary")
	b := c.setUpPlain()
	b.at("/console/channels/"+name+"/frames", nil, 200, "/console/channels/"+name+"/frames", "echo: hello canary")
	b.at("/console/adapters", nil, 200, "/console/adapters", fmt.Sprintf("%d in, %d out", after.FramesIn, after.FramesOut))
}

func (c *crew) logs(t *testing.T) {
	name := c.full("calm")
	pid := c.running(t, "calm").Pid
	c.line(t, "calm", "print 3", "printed")
	var page struct {
		Lines []lineView
		Next  string `json:"next_cursor"`
	}
	eventually(t, "what it printed is kept", func() bool {
		text := c.cli("plugin", "logs", name)
		return strings.Contains(text, "connected to the host") && strings.Contains(text, "stdout  printed to standard output 2") && strings.Contains(text, "stderr  printed to standard error 2")
	})
	holds(t, c.cli("plugin", "logs", name), fmt.Sprintf("host    started as process %d", pid))
	c.json(&page, "plugin", "logs", name)
	for i, l := range page.Lines {
		if l.Seq != page.Lines[0].Seq+int64(i) || l.At.IsZero() || l.Text == "" || !slices.Contains([]string{"stdout", "stderr", "host"}, l.Stream) {
			t.Errorf("line %d is %+v", i, l)
		}
	}
	newest := page.Lines[len(page.Lines)-1]
	c.json(&page, "plugin", "logs", name, "--limit", "1")
	if len(page.Lines) != 1 || page.Lines[0] != newest {
		t.Errorf("--limit 1: %+v, expected %+v", page.Lines, newest)
	}
	if text := c.cli("plugin", "logs", name, "--limit", "2"); strings.Count(text, "\n") != 2 || !strings.Contains(text, newest.Text) {
		t.Errorf("--limit 2: %q", text)
	}
	c.line(t, "calm", "print 1", "printed")
	path := "/plugins/" + name + "/logs?cursor=" + page.Next
	eventually(t, "the cursor leads to what came later", func() bool {
		c.must(&page, http.MethodGet, path, "")
		return len(page.Lines) == 2
	})
	if page.Lines[0].Seq != newest.Seq+1 || page.Lines[1].Seq != newest.Seq+2 {
		t.Errorf("after %d came %+v", newest.Seq, page.Lines)
	}

	// What a plugin writes can't move the terminal's cursor, nor forge a line.
	eventually(t, "all of the craft is kept", func() bool { return strings.Count(c.log("crafted"), ": end of craft\n") == 2 })
	text := c.cli("plugin", "logs", c.full("crafted"))
	c.json(&page, "plugin", "logs", c.full("crafted"))
	if dirty(text) || strings.Count(text, "\n") != len(page.Lines) {
		t.Errorf("%d lines, expected %d clean ones: %q", strings.Count(text, "\n"), len(page.Lines), text)
	}
	for want, args := range map[string][]string{
		"1 to 1000":  {name, "--limit", "0"},
		"found 1001": {name, "--limit", "1001"},
	} {
		r := runCommand(t, c.env(), "", append([]string{"plugin", "logs"}, args...)...)
		if r.code != 2 || r.out != "" {
			t.Errorf("plugin logs %v: %+v", args, r)
		}
		oneLine(t, r.err, want)
	}
}

func (c *crew) follows(t *testing.T) {
	name := c.full("talk")
	human := startProcess(t, c.env(), pontoonBinary, "plugin", "logs", name, "--follow")
	machine := startProcess(t, c.env(), pontoonBinary, "plugin", "logs", name, "--follow", "--json", "--limit", "1")
	seen := func(p *process, texts ...string) {
		t.Helper()
		for _, text := range texts {
			eventually(t, "the reader sees "+text, func() bool { return strings.Contains(p.out.String(), text) })
		}
	}
	seen(human, "  host    started as process ") // they are there before it writes
	seen(machine, "{")
	c.line(t, "talk", "print 4", "printed")
	seen(human, "stdout  printed to standard output 3\n", "stderr  printed to standard error 3\n")
	seen(machine, `"printed to standard output 3"`, `"printed to standard error 3"`)
	c.streams(t, "/plugins/"+name+"/logs?follow=true", "")
	c.streams(t, "/plugins/"+name+"/logs", "text/event-stream")
	human.signal(syscall.SIGINT)
	machine.signal(syscall.SIGINT)
	for _, p := range []*process{human, machine} {
		if code := p.waitExit(); code != 0 || p.errs.String() != "" {
			t.Errorf("after ctrl-C: exit status %d, stderr %q", code, p.errs.String())
		}
	}
	var last int64
	for _, line := range lines(machine.out.String()) {
		var l lineView
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if last != 0 && l.Seq != last+1 {
			t.Errorf("line %d after line %d", l.Seq, last)
		}
		last = l.Seq
	}
}

// streams checks that a request is answered by a stream of events.
func (c *crew) streams(t *testing.T, path, accept string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // ends the stream
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/api/v1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("GET %s with Accept %q is answered with %q, expected text/event-stream", path, accept, kind)
	}
}

// gone waits until a plugin is disabled and nothing of it runs.
func (c *crew) gone(t *testing.T, name string) {
	t.Helper()
	row := c.until(t, wait, name, "disabled", func(r pluginRow) bool { return r.State == "disabled" })
	if row.Pid != 0 || c.shimOf(name) != 0 {
		t.Errorf("disabled, but %+v runs, shim %d", row, c.shimOf(name))
	}
}

func (c *crew) disables(t *testing.T) {
	name := c.full("calm")
	for _, verb := range []string{"plugin", "channel"} { // two ways to the same
		before := c.running(t, "calm")
		var now pluginView
		c.json(&now, verb, "disable", name)
		if verb == "plugin" && (now.State != "disabled" || now.PID != 0 || now.Health.Attached) {
			t.Errorf("plugin disable answered %+v", now)
		}
		c.gone(t, "calm")
		if line := c.processes()[before.Pid]; line != "" {
			t.Errorf("%s disable: %d still runs: %s", verb, before.Pid, line)
		}
		var ch channelView
		eventually(t, "its channel is detached", func() bool { c.json(&ch, "channel", "show", name); return !ch.Health.Attached })
		if ch.On || ch.Kind != "plugin" || ch.Health.Process == nil || *ch.Health.Process != "disabled" {
			t.Errorf("%s disable: channel %+v", verb, ch)
		}
		c.json(&pluginShown{}, "plugin", "disable", name) // it is that already
		c.gone(t, "calm")
		c.json(&now, verb, "enable", name)
		if verb == "plugin" && now.State != "running" {
			t.Errorf("plugin enable answered %+v", now)
		}
		if now := c.running(t, "calm"); now.Pid == before.Pid || now.Reason != "" {
			t.Errorf("%s enable: %+v, before %+v", verb, now, before)
		}
		c.json(&ch, "channel", "show", name)
		if !ch.On || ch.Health.Process == nil || *ch.Health.Process != "running" {
			t.Errorf("%s enable: channel %+v", verb, ch)
		}
	}
	c.echoes(t, "calm", "here again")
}

func (c *crew) restarts(t *testing.T) {
	before := c.running(t, "calm")
	var p pluginShown
	c.json(&p, "plugin", "restart", c.full("calm"))
	if p.Name != c.full("calm") {
		t.Errorf("plugin restart --json: %+v", p)
	}
	c.until(t, wait, "calm", "another process", func(r pluginRow) bool {
		return r.State == "running" && r.Pid != before.Pid && r.Restarts == before.Restarts+1
	})
	if line := c.processes()[before.Pid]; line != "" {
		t.Errorf("the first process runs: %s", line)
	}
	c.echoes(t, "calm", "restarted")

	row := c.until(t, wait, "once", "quarantined", func(r pluginRow) bool { return r.State == "quarantined" })
	if !strings.Contains(row.Reason, "exited with status 3") {
		t.Errorf("quarantined with reason %q", row.Reason)
	}
	holds(t, c.cli("plugin", "restart", c.full("once")), c.full("once"))
	if row := c.running(t, "once"); row.Reason != "" || row.Restarts != 1 {
		t.Errorf("out of quarantine it is %+v", row)
	}
}

func (c *crew) refusesOperations(t *testing.T) {
	c.cli("plugin", "disable", c.full("calm"))
	c.gone(t, "calm")
	for _, e := range []struct{ verb, name, want string }{
		{"restart", "calm", "disabled: enable it first"},
		{"restart", "off", "says enabled: false"},
		{"enable", "off", "says enabled: false"},
	} {
		r := runCommand(t, c.env(), "", "plugin", e.verb, c.full(e.name))
		if r.code != 1 || r.out != "" {
			t.Errorf("plugin %s %s: %+v", e.verb, e.name, r)
		}
		oneLine(t, r.err, "plugin "+c.full(e.name)+": ")
		oneLine(t, r.err, e.want)
		if status, text := c.request(http.MethodPost, "/plugins/"+c.full(e.name)+"/"+e.verb, ""); status != http.StatusConflict || !strings.Contains(text, e.want) {
			t.Errorf("POST %s of %s: %d %s", e.verb, e.name, status, text)
		}
	}
	c.gone(t, "calm")
	c.gone(t, "off")
	c.cli("plugin", "enable", c.full("calm"))
	c.running(t, "calm")
	for _, args := range [][]string{
		{"restart", "nobody"}, {"enable", "nobody"}, {"disable", "nobody"}, {"logs", "nobody"}, {"logs", "nobody", "--follow"},
		{"restart", "no/body?x#y"}, {"logs", "../channels"}, {"disable", "\x1b[31mred\nforged"},
	} {
		r := runCommand(t, c.env(), "", append([]string{"plugin"}, args...)...)
		if r.code != 1 || r.out != "" || dirty(r.err) {
			t.Errorf("plugin %v: %+v", args, r)
		}
		oneLine(t, r.err, "not found in plugins.yaml")
	}
}

func (c *crew) doctor(t *testing.T) {
	c.running(t, "calm")
	env := append(c.env(), "HOME="+c.home()) // it fills in plugins.yaml itself
	r := runCommand(t, env, "", "doctor", "--plugins", c.file)
	holds(t, r.out, "program of "+c.full("talk"), "memory limits of plugins", c.url+" is ready")
	if r.err != "" || dirty(r.out) {
		t.Errorf("doctor: %+v", r)
	}
	var v struct{ Checks []finding }
	r = runCommand(t, env, "", "doctor", "--plugins", c.file, "--json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("doctor --json: %v in %s", err, r.out)
	}
	found := map[string]finding{}
	for _, f := range v.Checks {
		found[f.What] = f
	}
	if f := found["plugin "+c.full("calm")]; f.Result != checkOK || !strings.Contains(f.Detail, "sandbox full, as the host's user, memory limited by "+c.plugin("calm").LimitBy) {
		t.Errorf("of a plugin that runs: %+v", f)
	}
	if f := found["plugin "+c.full("broken")]; f.Result != checkFail || !strings.Contains(f.Detail, "quarantined: ") || r.code != 1 {
		t.Errorf("of a quarantined one: %+v, exit status %d", f, r.code)
	}
	if limits := found["memory limits of plugins"]; !regexp.MustCompile(`^(by (cgroup|rlimit)|not enforced: )`).MatchString(limits.Detail) {
		t.Errorf("the limiter is not named: %+v", limits)
	}

	// Without a host, and without a file of plugins.
	env = []string{"PONTOON_URL=http://127.0.0.1:1", "PONTOON_DATA=" + t.TempDir()}
	if r := runCommand(t, env, "", "doctor", "--json"); r.code != 0 || r.err != "" || !json.Valid([]byte(r.out)) || !strings.Contains(r.out, "none at http://127.0.0.1:1") {
		t.Errorf("without a host: %+v", r)
	}
	if r := runCommand(t, env, "", "doctor", "--plugins", "not-there.yaml"); r.code != 1 || !strings.Contains(r.out, "not-there.yaml is not there") {
		t.Errorf("without the file that was named: %+v", r)
	}
}
