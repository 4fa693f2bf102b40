//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// post sends a body, a T of which becomes thread, and returns the answer's status; a 503
// must say when to come again.
func (h *tight) post(path, key string, body []byte, thread string) (int, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // only bites when something is broken
	before, behind, found := bytes.Cut(body, []byte("T"))
	if !found {
		thread = ""
	}
	head := fmt.Sprintf("POST /api/v1%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, key, len(before)+len(thread)+len(behind))
	all := net.Buffers{[]byte(head), before, []byte(thread), behind}
	if _, err := all.WriteTo(conn); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	switch {
	case err != nil:
		return 0, err
	case resp.StatusCode >= 400 && n > 32<<10:
		return 0, fmt.Errorf("%d with %d bytes", resp.StatusCode, n)
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "":
		return 0, fmt.Errorf("503 without Retry-After")
	}
	return resp.StatusCode, nil
}

// Bodies that cost a multiple of their bytes to decode, and of who needs no key.
func TestMemoryBodies(t *testing.T) {
	h := startTight(t)
	keys := []string{h.runKey("one"), h.runKey("two")}
	var fields strings.Builder
	for i := range 95_000 {
		fmt.Fprintf(&fields, `,"k%d":0`, i)
	}
	list := func(item string, n int) string { return "[" + strings.Repeat(item+",", n) + item + "]" }
	run := func(content, more string) string {
		return `{"threadId":"T","runId":"r","messages":[{"id":"m","role":"user","content":` + content + `}]` + more + `}`
	}
	card := `{"type":"custom","payloadType":"bridge.card","data":{"elements":` + list(`{"type":"divider"}`, 500) + `}}`
	for _, c := range []struct {
		name, path, body string
		n, status        int
	}{
		{"logins with unknown fields", "/sessions", `{"name":"a"` + fields.String() + `}`, 60, 413},
		{"a setup with a list", "/operator/setup", `{"name":` + list("{}", 300_000) + `}`, 60, 413},
		{"channels with a list", "/channels", `{"name":` + list("{}", 300_000) + `}`, 60, 400},
		{"messages to render", "/render", `{"message":{"parts":` + list(card, 89) + `},"capabilities":["card"]}`, 40, 400},
		{"runs with many contents", "/agent/run", run(list(`{"type":"text","text":"a"}`, 400_000), ""), 16, 413},
		{"runs with a long text", "/agent/run", run(`"`+strings.Repeat("a", 15<<20)+`"`, ""), 32, 413},
		{"runs with props", "/agent/run", run(`"a"`, `,"forwardedProps":`+list(`{"a":[1]}`, 1_300_000)), 16, 413},
		{"runs with a state", "/agent/run", run(`"a"`, `,"state":`+list(`{"a":[1]}`, 1_300_000)), 16, 200},
	} {
		body := []byte(c.body)
		atOnce(t, c.n, func(i int) error {
			key := h.key
			if c.path == "/agent/run" {
				key = keys[i%2]
			}
			status, err := h.post(c.path, key, body, strconv.Itoa(i))
			if err == nil && status != c.status && status != http.StatusServiceUnavailable {
				err = fmt.Errorf("%s: %d, expected %d", c.name, status, c.status)
			}
			return err
		})
		h.kept(c.name)
	}
}
