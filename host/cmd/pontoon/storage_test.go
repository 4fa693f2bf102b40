package main

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/schema"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// diarist is an adapter that keeps a log of its own of what was acknowledged.
type diarist struct {
	*peer
	n     int
	acked []string
}

func (h *host) diarist(token string) *diarist {
	h.t.Helper()
	p := h.dial("", http.Header{"X-Bridge-Token": {token}})
	p.send(frame{"type": "register", "platform": "test", "protocol": "1.1", "capabilities": []string{"text", "ack"}})
	if ack := p.next("register_ack"); ack["ok"] != true {
		h.t.Fatalf("register_ack: %v", ack)
	}
	return &diarist{peer: p}
}

// tell sends a message and returns the host's word on it.
func (d *diarist) tell(size int) (ok, retryable bool, why string) {
	d.t.Helper()
	d.n++
	id := fmt.Sprintf("m%d", d.n)
	if err := d.conn.WriteJSON(frame{"type": "message", "message_id": id, "conversation_id": "c", "user_id": "alice", "text": id + strings.Repeat(".", size)}); err != nil {
		return false, true, err.Error()
	}
	timeout := time.After(wait)
	for {
		select {
		case f, open := <-d.frames:
			switch {
			case !open:
				return false, true, "closed"
			case f["type"] == "send": // an answer, which is acknowledged like a platform would
				// A host that has just stopped reads it no more; the end of frames says so.
				_ = d.conn.WriteJSON(frame{"type": "message_ack", "message_id": f["message_id"], "ok": true})
			case f["type"] == "message_ack" && f["message_id"] == id:
				ok, _ = f["ok"].(bool)
				retryable, _ = f["retryable"].(bool)
				why, _ = f["error"].(string)
				if ok {
					d.acked = append(d.acked, id)
				}
				return ok, retryable, why
			}
		case <-timeout:
			d.t.Fatalf("message %s: no acknowledgement", id)
		}
	}
}

// tellAll sends messages until n were acknowledged.
func (d *diarist) tellAll(n, size int) {
	d.t.Helper()
	for range n {
		if ok, _, why := d.tell(size); !ok {
			d.t.Fatalf("message not taken: %s", why)
		}
	}
}

// untilRefused sends messages until one is refused, for now.
func (d *diarist) untilRefused(size int) {
	d.t.Helper()
	for range 10_000 {
		ok, retryable, why := d.tell(size)
		switch {
		case ok:
			continue
		case !retryable || !strings.HasPrefix(why, "storage_unavailable"):
			d.t.Fatalf("refused with %q, retryable %v", why, retryable)
		}
		return
	}
	d.t.Fatal("nothing was refused")
}

// untilTaken sends messages until one is taken again.
func (d *diarist) untilTaken() time.Duration {
	d.t.Helper()
	since := time.Now()
	await.Until(d.t, "messages are taken again", func() bool {
		ok, retryable, why := d.tell(10)
		if !ok && (!retryable || why == "closed") {
			d.t.Fatalf("refused with %q, retryable %v", why, retryable)
		}
		return ok
	})
	return time.Since(since)
}

// judge compares history with what was acknowledged: each once, in order.
func (h *host) judge(r *torture.Row, channel string, acked []string) {
	h.t.Helper()
	rows := h.history(channel)
	slices.Reverse(rows)
	places := map[string][]int{}
	for at, row := range rows {
		if id, _, _ := strings.Cut(row.Text, "."); row.Direction == "in" {
			places[id] = append(places[id], at)
		}
	}
	last := -1
	for _, id := range acked {
		found := places[id]
		if len(found) == 0 {
			r.Lost++
			continue
		}
		r.Duplicated += len(found) - 1
		if found[0] < last {
			r.Disordered++
		}
		last = found[0]
	}
}

// ready waits until the host says that it is, or is not.
func (h *host) ready(want bool) {
	h.t.Helper()
	eventually(h.t, fmt.Sprintf("ready is %v", want), func() bool {
		resp, err := http.Get(h.url + "/readyz")
		if err != nil {
			h.t.Fatal(err)
		}
		_ = resp.Body.Close()
		return (resp.StatusCode == http.StatusOK) == want
	})
}

// A disk of 2 MiB: messages are refused before SQLite fails, reads go on, and
// they are taken again when there is room.
func TestTortureDiskFull(t *testing.T) {
	t.Parallel()
	h := &host{t: t, data: filepath.Join(t.TempDir(), "disk")}
	if err := os.Mkdir(h.data, 0o700); err != nil {
		t.Fatal(err)
	}
	h.wrap = []string{"unshare", "--mount", "--map-root-user", "sh", "-c", `mount -t tmpfs -o size=2m tmpfs "$0" && dd if=/dev/zero of="$0/filler" bs=1k count=500 2>/dev/null && exec "$@"`, h.data}
	h.outside = func(path string) string { return fmt.Sprintf("/proc/%d/root%s", h.cmd.Process.Pid, path) }
	h.start("127.0.0.1:0")
	filler := h.outside(filepath.Join(h.data, "filler"))
	if _, err := os.Stat(filler); err != nil {
		t.Fatal(err)
	}
	d := h.diarist(h.channel("full", ""))
	d.untilRefused(2000)
	if len(d.acked) < 20 {
		t.Errorf("refused after %d messages", len(d.acked))
	}
	h.ready(false)
	r := torture.Row{Fault: "disk of 2 MiB nearly full"}
	h.judge(&r, "full", d.acked)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	r.Recovery = append(r.Recovery, d.untilTaken())
	h.ready(true)
	d.untilRefused(2000)
	h.judge(&r, "full", d.acked)
	r.Tried = fmt.Sprintf("%d messages, refused before SQLite fails", d.n)
	torture.Report(t, r)
	if log := h.errs.String(); strings.Contains(log, "full (13)") || !strings.Contains(log, "nearly full") || !strings.Contains(log, "messages are stored again") {
		t.Errorf("log:\n%s", log)
	}
}

// inject lets the host's system calls fail from now on; what it returns ends that.
func (h *host) inject(calls, fault string) (stop func()) {
	h.t.Helper()
	s := startProcess(h.t, nil, "strace", "-f", "-qq", "-p", strconv.Itoa(h.cmd.Process.Pid), "-o", "/dev/null", "-e", "trace="+calls, "-e", "inject="+calls+":"+fault)
	s.anyEnd = true
	eventually(h.t, "strace holds the host", func() bool {
		select {
		case <-s.exited:
			h.t.Fatalf("strace ended: %s", s.errs.String())
		default:
		}
		return h.traced()
	})
	return func() {
		s.signal(syscall.SIGINT)
		s.waitExit()
	}
}

// traced reports whether all threads of the host are traced.
func (h *host) traced() bool {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", h.cmd.Process.Pid))
	if err != nil || len(names) == 0 {
		return false
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte("TracerPid:\t0\n")) {
			return false
		}
	}
	return true
}

// A disk that writes with errors, or says that it is full: nothing is
// acknowledged meanwhile, and all goes on when it has passed.
func TestTortureDiskErrors(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"EIO", "ENOSPC"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			h := startHost(t)
			d := h.diarist(h.channel("c", ""))
			r := torture.Row{Fault: "writes fail with " + fault}
			for range torture.Times(1, 10) {
				d.tellAll(5, 100)
				passes := h.inject("pwrite64", "error="+fault)
				for range 3 {
					d.untilRefused(100)
				}
				h.ready(false)
				h.judge(&r, "c", d.acked)
				passes()
				r.Recovery = append(r.Recovery, d.untilTaken())
			}
			d.tellAll(5, 100)
			h.stop()
			h.again()
			h.judge(&r, "c", d.acked)
			r.Tried = fmt.Sprintf("%d times, %d messages of which %d were taken", len(r.Recovery), d.n, len(d.acked))
			torture.Report(t, r)
		})
	}
}

// After a sync that failed nothing is acknowledged by that process any more: it
// stops and says why. The next one has all that was acknowledged.
func TestTortureDiskNotSynced(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	d := h.diarist(h.channel("c", ""))
	r := torture.Row{Fault: "a sync fails: the host stops"}
	for range torture.Times(1, 10) {
		h.anyEnd = true
		d.tellAll(20, 100)
		h.inject("fsync,fdatasync", "error=EIO:when=1")
		if ok, _, _ := d.tell(100); ok {
			t.Error("acknowledged what was not synced")
		}
		if code := h.waitExit(); code != 1 || !strings.Contains(h.errs.String(), "did not confirm what was written") {
			t.Errorf("exit status %d:\n%s", code, h.errs.String())
		}
		began := time.Now()
		h.again()
		r.Recovery = append(r.Recovery, time.Since(began))
		h.judge(&r, "c", d.acked)
		next := h.diarist(h.rotate("c"))
		next.n, next.acked = d.n, d.acked
		d = next
	}
	d.tellAll(3, 10)
	h.judge(&r, "c", d.acked)
	r.Tried = fmt.Sprintf("%d times, %d messages acknowledged", len(r.Recovery), len(d.acked))
	torture.Report(t, r)
}

func (h *host) rotate(channel string) string {
	h.t.Helper()
	var made struct{ Token string }
	h.must(&made, "POST", "/channels/"+channel+"/tokens", `{"overlap":"24h"}`)
	return made.Token
}

// Another program locks the database: messages are refused until it lets go.
func TestTortureDiskLocked(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	d := h.diarist(h.channel("c", ""))
	d.tellAll(5, 100)
	cmd := exec.Command("sqlite3", filepath.Join(h.data, "pontoon.db"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = in.Close() }()
	if _, err := io.WriteString(in, ".timeout 10000\nBEGIN EXCLUSIVE;\nSELECT 'locked';\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("locked\n"))); err != nil {
		t.Fatal(err)
	}
	d.untilRefused(100)
	r := torture.Row{Fault: "another program locks the database", Tried: "once"}
	h.judge(&r, "c", d.acked)
	h.ready(false)
	if _, err := io.WriteString(in, "ROLLBACK;\n"); err != nil {
		t.Fatal(err)
	}
	r.Recovery = append(r.Recovery, d.untilTaken())
	h.judge(&r, "c", d.acked)
	torture.Report(t, r)
}

// The data directory is where the shell is, unless told otherwise: for every
// command that needs no host.
func TestDefaultDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, data := range []string{"", "./data", "data", "deeper/data"} {
		t.Run(cmp.Or(data, "none"), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(dir, strings.ReplaceAll(data, "/", "-"))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			h := &host{
				t: t, data: cmp.Or(data, "./data"), wrap: []string{"env", "-C", dir},
				outside: func(path string) string { return filepath.Join(dir, path) },
			}
			h.start("127.0.0.1:0")
			run := func(args ...string) {
				t.Helper()
				if data != "" {
					args = append(args, "--data", data)
				}
				if r := runCommandIn(t, dir, []string{"PONTOON_URL=" + h.url}, "", args...); r.code != 0 {
					t.Errorf("pontoon %s: exit status %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
				}
			}
			run("channel", "create", "kept")
			run("backup", "saved.tar.gz")
			run("doctor")
			run("operator", "link")
			h.stop()
			run("backup", "again.tar.gz")
			run("secret", "rotate-key")
			run("secret", "forget")
			run("restore", "saved.tar.gz")
			run("doctor")
			h.again()
			run("channel", "show", "kept")
		})
	}
}

// Random bytes in the database: the host does not start, says why, and names
// the backup, which brings everything back.
func TestTortureDiskCorrupt(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	d := h.diarist(h.channel("c", ""))
	d.tellAll(100, 500)
	saved := filepath.Join(t.TempDir(), "b.tar.gz")
	h.cli("backup", saved)
	h.stop()
	file := filepath.Join(h.data, "pontoon.db")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	places := []int{0, -1}
	for range torture.Times(2, 40) {
		places = append(places, 1+r.IntN(len(whole)/page-1))
	}
	for _, at := range places {
		broken := slices.Clone(whole)
		if at < 0 {
			broken = broken[:len(broken)/2/page*page+100] // cut off
		} else {
			for i := range page {
				broken[at*page+i] = byte(r.Uint32())
			}
		}
		if err := os.WriteFile(file, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		got := runCommand(t, nil, "", "serve", "--data", h.data, "--listen", "127.0.0.1:0")
		if got.code != 1 || strings.Contains(got.out, "listens on") {
			t.Fatalf("page %d: exit status %d\n%s%s", at, got.code, got.out, got.err)
		}
		oneLine(t, got.err, "damaged")
		oneLine(t, got.err, "pontoon restore "+saved)
	}
	row := torture.Row{Fault: "a page of the database is random, or the file cut off", Tried: fmt.Sprintf("%d times: refused at the start, restored", len(places))}
	began := time.Now()
	h.cli("restore", saved)
	h.again()
	row.Recovery = append(row.Recovery, time.Since(began))
	h.judge(&row, "c", d.acked)
	torture.Report(t, row)
}

// downgrade takes back the newest migration and returns the schema before it.
func downgrade(t *testing.T, file string) int {
	t.Helper()
	return downgraded(t, file, func(p *goose.Provider) error {
		_, err := p.Down(t.Context())
		return err
	})
}

// downgradeBefore takes back the migration and all that came after it.
func downgradeBefore(t *testing.T, file string, migration int64) {
	t.Helper()
	downgraded(t, file, func(p *goose.Provider) error {
		_, err := p.DownTo(t.Context(), migration-1)
		return err
	})
}

func downgraded(t *testing.T, file string, down func(*goose.Provider) error) int {
	t.Helper()
	d, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if err := down(p); err != nil {
		t.Fatal(err)
	}
	was, err := p.GetDBVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return int(was)
}

// A database of an older schema is backed up before it is changed.
func TestMigrationBackup(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	d := h.diarist(h.channel("c", ""))
	d.tellAll(5, 10)
	r := torture.Row{Fault: "migration"}
	h.stop()
	// As it was before the newest migration, which goes back by its own statements.
	old := filepath.Join(h.data, "pontoon.db")
	was := downgrade(t, old)
	h.again()
	h.judge(&r, "c", d.acked)
	h.stop()
	made, err := filepath.Glob(filepath.Join(h.data, "backups", fmt.Sprintf("schema-%d-*.db", was)))
	if err != nil || len(made) != 1 {
		t.Fatalf("backups: %v, %v", made, err)
	}
	h.cli("restore", made[0])
	d2, err := sql.Open("sqlite", old)
	if err != nil {
		t.Fatal(err)
	}
	var version int
	err = d2.QueryRow("SELECT max(version_id) FROM goose_db_version").Scan(&version)
	if cerr := d2.Close(); err != nil || cerr != nil || version != was {
		t.Fatalf("restored schema %d, %v, %v, expected %d", version, err, cerr, was)
	}
	h.again()
	h.judge(&r, "c", d.acked)
	torture.Report(t, r)
}
