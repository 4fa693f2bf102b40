//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pluginEvent is what the stream of events says of a plugin.
type pluginEvent struct{ Name, State, Reason string }

// watch reads the stream of events until t ends. What it returns are the
// plugins' events so far.
func (c *crew) watch(t *testing.T) func() []pluginEvent {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(resp.Body)
	if !in.Scan() { // its first line comes when it listens
		t.Fatalf("no event stream: %v", in.Err())
	}
	var mu sync.Mutex
	var seen []pluginEvent
	var reader sync.WaitGroup
	reader.Go(func() {
		for kind := ""; in.Scan(); {
			if k, ok := strings.CutPrefix(in.Text(), "event: "); ok {
				kind = k
			}
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			if !ok || kind != "plugin.state" {
				continue
			}
			var e pluginEvent
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Errorf("%v in %s", err, data)
			}
			mu.Lock()
			seen = append(seen, e)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		cancel()
		reader.Wait()
		_ = resp.Body.Close()
	})
	return func() []pluginEvent {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// rest is what only REST shows of plugins that work.
func (c *crew) rest(t *testing.T) {
	type kindRow struct {
		Kind             string
		Creatable, Token bool
	}
	var kinds struct{ Kinds []kindRow }
	c.must(&kinds, http.MethodGet, "/channels/_kinds", "")
	if !slices.Contains(kinds.Kinds, kindRow{Kind: "plugin"}) {
		t.Errorf("kinds: %+v, expected plugin, neither creatable nor with a token", kinds)
	}

	var names, want []string
	for cursor := ""; ; {
		var page struct {
			Plugins []pluginShown
			Next    string `json:"next_cursor"`
		}
		c.must(&page, http.MethodGet, "/plugins?limit=2&cursor="+cursor, "")
		for _, p := range page.Plugins {
			names = append(names, p.Name)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for _, e := range c.all() {
		want = append(want, c.full(e.name))
	}
	if !slices.Equal(names, want) {
		t.Errorf("page by page: %v, expected %v", names, want)
	}

	var verdict verdictView
	if c.must(&verdict, http.MethodPost, "/plugins/"+c.full("talk")+"/verify", ""); !verdict.OK || !strings.Contains(verdict.Found, c.sum) {
		t.Errorf("verify: %+v", verdict)
	}

	events := c.watch(t)
	heard := func(name string, states ...string) {
		t.Helper()
		var got []string
		eventually(t, fmt.Sprintf("%s is told to be %v", name, states), func() bool {
			got = nil
			for _, e := range events() {
				if e.Name == c.full(name) {
					got = append(got, e.State)
				}
			}
			return len(got) >= len(states)
		})
		if !slices.Equal(got, states) {
			t.Errorf("%s is told to be %v, expected %v", name, got, states)
		}
	}
	c.running(t, "calm")
	c.must(nil, http.MethodPost, "/plugins/"+c.full("calm")+"/restart", "")
	heard("calm", "stopping", "starting", "running")
	c.must(nil, http.MethodPost, "/plugins/"+c.full("calm")+"/disable", "")
	heard("calm", "stopping", "starting", "running", "stopping", "disabled")
	c.must(nil, http.MethodPost, "/plugins/"+c.full("calm")+"/enable", "")
	heard("calm", "stopping", "starting", "running", "stopping", "disabled", "starting", "running")
	c.must(nil, http.MethodPost, "/plugins/"+c.full("broken")+"/restart", "")
	heard("broken", "starting", "quarantined")
	all := events()
	if last := all[len(all)-1]; !strings.Contains(last.Reason, "not today") {
		t.Errorf("quarantined, but told %+v", last)
	}

	_, text := c.request(http.MethodGet, "/audit?limit=500", "")
	for _, action := range []string{"plugin.restart", "plugin.disable", "plugin.enable"} {
		if !strings.Contains(text, `"`+action+`"`) {
			t.Errorf("the audit log lacks %s: %s", action, text)
		}
	}
}

// refusesRequests: what is the file's is not REST's to change.
func (c *crew) refusesRequests(t *testing.T) {
	calm := c.full("calm")
	c.channel("lobby", "") // that of no plugin
	for name, e := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"errToken":        {"POST", "/channels/" + calm + "/tokens", `{}`, 409, "needs no token"},
		"errOwnToken":     {"POST", "/channels/" + calm + "/tokens", `{"token":"a-token-of-my-own-12345"}`, 409, "needs no token"},
		"errRename":       {"PATCH", "/channels/" + calm, `{"name":"other"}`, 409, "rename it in plugins.yaml"},
		"errDelete":       {"DELETE", "/channels/" + calm, "", 409, "remove its entry first, " + c.file + ":"},
		"errKind":         {"POST", "/channels", `{"name":"mine","kind":"plugin"}`, 422, "made by plugins.yaml"},
		"errName":         {"POST", "/channels", `{"name":"` + calm + `"}`, 409, "taken"},
		"errGet":          {"GET", "/plugins/nobody", "", 404, "not found in plugins.yaml"},
		"errOther":        {"GET", "/plugins/lobby", "", 404, "not found in plugins.yaml"},
		"errLogs":         {"GET", "/plugins/nobody/logs", "", 404, "not found in plugins.yaml"},
		"errFollow":       {"GET", "/plugins/nobody/logs?follow=true", "", 404, "not found in plugins.yaml"},
		"errRestart":      {"POST", "/plugins/nobody/restart", "", 404, "not found in plugins.yaml"},
		"errEnable":       {"POST", "/plugins/nobody/enable", "", 404, "not found in plugins.yaml"},
		"errDisable":      {"POST", "/plugins/nobody/disable", "", 404, "not found in plugins.yaml"},
		"errDisableOther": {"POST", "/plugins/lobby/disable", "", 404, "not found in plugins.yaml"},
		"errVerify":       {"POST", "/plugins/nobody/verify", "", 404, "not found in plugins.yaml"},
		"errVerb":         {"POST", "/plugins/" + calm + "/explode", "", 404, ""},
		"errLongName":     {"GET", "/plugins/" + strings.Repeat("a", 65), "", 422, "path.name"},
		"errLimit":        {"GET", "/plugins?limit=501", "", 422, "query.limit"},
		"errCursor":       {"GET", "/plugins?cursor=x", "", 422, "query.cursor"},
		"errLogsLimit":    {"GET", "/plugins/" + calm + "/logs?limit=1001", "", 422, "query.limit"},
		"errLogsCursor":   {"GET", "/plugins/" + calm + "/logs?cursor=x", "", 422, "query.cursor"},
	} {
		status, text := c.request(e.method, e.path, e.body)
		var p problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Status != status || p.Detail == "" {
			t.Errorf("%s: %d %s is no problem: %v", name, status, text, err)
		}
		if status != e.status || !strings.Contains(text, e.want) {
			t.Errorf("%s: %d %s, expected %d with %q", name, status, text, e.status, e.want)
		}
	}
	var ch channelView
	c.must(&ch, http.MethodPatch, "/channels/"+calm, `{"name":"`+calm+`","agent":"none"}`) // the name that it has
	if ch.Agent != "none" {
		t.Errorf("the agent, which the file leaves out, is not changed: %+v", ch)
	}
	c.must(nil, http.MethodPatch, "/channels/"+calm, `{"agent":"echo"}`)
	if row := c.plugin("calm"); row.State != "running" {
		t.Errorf("after all it is %+v", row)
	}
}

// wantsKey: every operation on plugins that the document names is the
// operator's.
func (c *crew) wantsKey(t *testing.T) {
	before := c.running(t, "calm")
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	c.must(&doc, http.MethodGet, "/openapi.json", "")
	tried := 0
	for _, key := range []string{"", "pnk_thatisnotthekey"} {
		other := *c.host
		other.key = key
		for path, methods := range doc.Paths {
			_, path, ours := strings.Cut(path, "/plugins")
			if !ours {
				continue
			}
			for method := range methods {
				tried++
				path := "/plugins" + strings.ReplaceAll(path, "{name}", c.full("calm"))
				if status, text := other.request(strings.ToUpper(method), path, ""); status != http.StatusUnauthorized || !strings.Contains(text, "no valid key") {
					t.Errorf("%s %s with key %q: %d %s", method, path, key, status, text)
				}
			}
		}
	}
	if tried < 2*8 {
		t.Errorf("only %d operations in %v", tried/2, doc.Paths)
	}
	if now := c.plugin("calm"); now != before {
		t.Errorf("it went from %+v to %+v", before, now)
	}
}

// readyz is what an orchestrator sees, now.
func readyz(url string) (status int, text string, err error) {
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// staysReady: only a first start keeps a host from being ready, not the end of
// what ran.
func (c *crew) staysReady(t *testing.T) {
	row := c.running(t, "stubborn")
	c.cli("plugin", "disable", c.full("stubborn"))
	c.until(t, wait, "stubborn", "stopping", func(r pluginRow) bool { return r.State == "stopping" })
	if status, text, err := readyz(c.url); err != nil || status != http.StatusOK {
		t.Errorf("readyz while a plugin stops: %d %s %v, expected 200", status, text, err)
	}
	if err := syscall.Kill(row.Pid, syscall.SIGKILL); err != nil { // it would take its time
		t.Fatal(err)
	}
	c.gone(t, "stubborn")
}

// reloads changes the file, by command and by SIGHUP, and breaks it.
func (c *crew) reloads(t *testing.T) {
	calm, talk := c.running(t, "calm"), c.running(t, "talk")
	c.talk.args = []string{"elsewhere=127.0.0.1:1"}
	extra := plugin{name: "extra", mode: "ok"}
	c.write(c.talk, c.calm, c.off, c.once, c.broken, extra)
	var got struct{ Added, Removed, Changed, Unchanged []string }
	c.json(&got, "plugin", "reload")
	full := func(names ...string) (out []string) {
		for _, name := range names {
			out = append(out, c.full(name))
		}
		return out
	}
	if !slices.Equal(got.Added, full("extra")) || !slices.Equal(got.Removed, full("crafted", "stubborn")) || !slices.Equal(got.Changed, full("talk")) ||
		!slices.Equal(got.Unchanged, full("calm", "off", "once", "broken")) {
		t.Errorf("reload did %+v", got)
	}
	if now := c.running(t, "talk"); now.Pid == talk.Pid {
		t.Errorf("the changed one is still process %d", now.Pid)
	}
	c.running(t, "extra")
	table := c.cli("plugin", "reload")
	holds(t, table, "added", "unchanged  "+strings.Join(full("talk", "calm", "off", "once", "broken", "extra"), ", ")+"\n")
	if n := strings.Count(table, "\n"); n != 4 {
		t.Errorf("plugin reload prints %d lines: %q", n, table)
	}
	c.removedChannel(t, "crafted")

	before := c.plugins()
	good := c.yaml(c.talk, c.calm)
	last := len(lines(good))
	for name, e := range map[string]struct{ more, want string }{
		"errKey":     {"    colour: red\n", `found unknown key "colour"`},
		"errUnset":   {"  - {name: x, command: [\"${NOT_THERE}\"]}\n", "found ${NOT_THERE}, which is neither set"},
		"errProgram": {"  - {name: x, command: [./not-there]}\n", "not-there"},
		"errSize":    {"    limits: {memory: 1TB}\n", "1TB"},
		"errTwice":   {"  - {name: " + c.full("calm") + ", command: [sh]}\n", "calm"},
	} {
		writeFile(t, c.file, good+e.more)
		r := runCommand(t, c.env(), "", "plugin", "reload")
		if where := regexp.MustCompile(regexp.QuoteMeta(fmt.Sprintf("%s:%d:", c.file, last+1)) + `\d+: `); r.code != 1 || r.out != "" || !where.MatchString(r.err) {
			t.Errorf("%s: %+v, expected an error at %s", name, r, where)
		}
		oneLine(t, r.err, e.want)
	}
	c.signal(syscall.SIGHUP) // the last of them
	eventually(t, "the error is logged", func() bool { return strings.Contains(c.errs.String(), fmt.Sprintf("%s:%d:", c.file, last+1)) })
	if now := c.plugins(); !maps.Equal(now, before) {
		t.Errorf("an invalid file changed %+v to %+v", before, now)
	}
	c.write(c.talk, c.calm)
	c.signal(syscall.SIGHUP)
	eventually(t, "the hangup is heard", func() bool { return len(c.plugins()) == 2 })
	if now := c.plugin("calm"); now != calm {
		t.Errorf("the unchanged one went from %+v to %+v", calm, now)
	}
	c.reload()
	if text := c.cli("plugin", "list", "--json"); text != "{\"plugins\":[]}\n" || len(c.processes()) != 0 {
		t.Errorf("without plugins the list is %s, and %v run", text, c.processes())
	}
}

// removedChannel: with its entry a plugin's channel loses its owner, and nothing
// else.
func (c *crew) removedChannel(t *testing.T, name string) {
	t.Helper()
	if status, text := c.request(http.MethodGet, "/plugins/"+c.full(name), ""); status != http.StatusNotFound {
		t.Errorf("the removed one: %d %s", status, text)
	}
	if shim := c.shimOf(name); shim != 0 {
		t.Errorf("the removed one runs in %d", shim)
	}
	var ch channelView
	eventually(t, "its channel is detached", func() bool {
		c.must(&ch, http.MethodGet, "/channels/"+c.full(name), "")
		return !ch.Health.Attached
	})
	if ch.Kind != "plugin" || ch.Health.Process != nil {
		t.Errorf("its channel is %+v", ch)
	}
	if status, text := c.request(http.MethodPost, "/channels/"+c.full(name)+"/tokens", ""); status != http.StatusConflict {
		t.Errorf("it gets a token: %d %s", status, text)
	}
	c.must(nil, http.MethodDelete, "/channels/"+c.full(name), "")
}

// outlivesHost: what an operator disabled stays so when the host starts again,
// which is ready when every first start has come to an end, good or bad.
func (c *crew) outlivesHost(t *testing.T) {
	c.write(c.talk, c.calm)
	c.cli("plugin", "reload")
	c.running(t, "talk")
	c.cli("plugin", "disable", c.full("calm"))
	c.gone(t, "calm")
	follower := startProcess(t, c.env(), pontoonBinary, "plugin", "logs", c.full("talk"), "--follow")
	c.line(t, "talk", "print 10", "printed") // more lines than the next host has of it
	eventually(t, "the follower is there", func() bool { return strings.Contains(follower.out.String(), "standard error 9") })
	c.stop()

	// Their first starts end when the test says so.
	script := filepath.Join(c.dir, "gated")
	writeFile(t, script, "#!/bin/sh\nuntil [ -e \"$0.$1\" ]; do sleep 0.02; done\nexec "+c.program+" \"$@\"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	read := "read: [" + c.program + "]" // which the script runs
	c.write(c.talk, c.calm,
		plugin{name: "fails", mode: "exit3", path: script, yaml: "restart: {backoff: 60s}\n" + read},
		plugin{name: "works", mode: "ok", path: script, yaml: read})
	var gatekeeper sync.WaitGroup
	defer gatekeeper.Wait()
	url := c.url
	gatekeeper.Go(func() {
		for _, gate := range [][2]string{{"fails", "exit3"}, {"works", "ok"}} {
			want := "plugins not settled: " + c.full(gate[0]) + " is starting\n"
			var status int
			var text string
			for end := time.Now().Add(wait); status != http.StatusServiceUnavailable || text != want; time.Sleep(10 * time.Millisecond) { // between two polls
				if time.Now().After(end) {
					t.Errorf("readyz: %d %q, expected 503 %q", status, text, want)
					break
				}
				status, text, _ = readyz(url) // nobody may listen yet
			}
			if err := os.WriteFile(script+"."+gate[1], nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	c.again() // returns when it is ready
	row := c.plugin("fails")
	if row.State != "backoff" || !strings.Contains(row.Reason, "exited with status 3") || c.shown("fails").NextStart == nil {
		t.Errorf("ready, but the one that fails is %+v", row)
	}
	for _, name := range []string{"works", "talk"} {
		if row := c.plugin(name); row.State != "running" || row.Restarts != 0 {
			t.Errorf("ready, but %s is %+v", name, row)
		}
	}
	c.cli("plugin", "restart", c.full("fails")) // it need not wait
	c.until(t, wait, "fails", "failed again", func(r pluginRow) bool { return r.State == "backoff" && r.Restarts == 1 })

	if err := os.Remove(script + ".ok"); err != nil {
		t.Fatal(err)
	}
	c.cli("plugin", "restart", c.full("works"))
	c.until(t, wait, "works", "held at its gate", func(r pluginRow) bool { return r.State == "starting" && r.Pid != 0 && r.Restarts == 1 })
	c.cli("plugin", "disable", c.full("works"))
	c.gone(t, "works")

	c.gone(t, "calm")
	var ch channelView
	c.json(&ch, "channel", "show", c.full("calm"))
	if ch.On {
		t.Errorf("its channel is enabled: %+v", ch)
	}
	c.cli("plugin", "enable", c.full("calm"))
	c.running(t, "calm")
	c.echoes(t, "calm", "in the next host")

	started := fmt.Sprintf("started as process %d", c.plugin("talk").Pid)
	eventually(t, "the follower sees that the plugin was "+started, func() bool { return strings.Contains(follower.out.String(), started) })
}
