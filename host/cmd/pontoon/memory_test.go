//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// maxResident is how much memory the host may have had at its peak, in MiB, while
// Go was told to keep to goLimit.
const (
	maxResident = 400
	goLimit     = "GOMEMLIMIT=256MiB"
)

// plainBinary builds the host without the race detector, which needs several times
// the memory, once.
var plainBinary = sync.OnceValues(func() (string, error) {
	out := filepath.Join(testDir, "plain", "pontoon")
	text, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build pontoon: %w\n%s", err, text)
	}
	return out, err
})

// tight is a host that is to keep to its memory.
type tight struct{ *host }

func startTight(t *testing.T, args ...string) *tight {
	t.Helper()
	program, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, data: filepath.Join(t.TempDir(), "data"), args: args}
	h.wrap = []string{"env", goLimit, "PROGRAM=" + program, "sh", "-c", `exec "$PROGRAM" "$@"`} // $0 is the other program
	h.start("127.0.0.1:0")
	return &tight{h}
}

// kept checks the peak of the host's memory, and says what it was.
func (h *tight) kept(what string) {
	h.t.Helper()
	peak := h.memory("VmHWM")
	h.t.Logf("%s: at most %d MiB", what, peak)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", h.cmd.Process.Pid), []byte("5"), 0); err != nil { // the peak begins anew
		h.t.Error(err)
	}
	if peak > maxResident {
		h.t.Errorf("%s: the host had %d MiB, expected at most %d", what, peak, maxResident)
	}
}

// get asks until it is answered with other than 503, which must say when to ask
// again, and gives the answer's body to read.
func (h *tight) get(path, key string, header http.Header, read func(io.Reader) error) error {
	for {
		req, err := http.NewRequest(http.MethodGet, h.url+path, nil)
		if err != nil {
			return err
		}
		if header != nil {
			req.Header = header.Clone()
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode == http.StatusServiceUnavailable {
			_ = resp.Body.Close()
			pause, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if err != nil || resp.Header.Get("Content-Type") != "application/problem+json" {
				return fmt.Errorf("503 with the headers %v", resp.Header)
			}
			time.Sleep(time.Duration(pause) * time.Second) // as it was told
			continue
		}
		if resp.StatusCode == http.StatusOK {
			err = read(resp.Body)
		} else {
			text, _ := io.ReadAll(resp.Body)
			err = fmt.Errorf("%s: %d %.300s", path, resp.StatusCode, text)
		}
		_ = resp.Body.Close()
		return err
	}
}

var nextCursor = regexp.MustCompile(`"next_cursor":"([^"]+)"`)

// walk reads a list to its end, page by page, and counts its messages by a field that
// each has once.
func (h *tight) walk(path, key, field string) (messages, pages int, err error) {
	for cursor := ""; ; {
		at := path
		if cursor != "" {
			at += "&cursor=" + url.QueryEscape(cursor)
		}
		cursor = ""
		err := h.get(at, key, nil, func(body io.Reader) error {
			n, end, err := count(body, `"`+field+`":`)
			messages += n
			if found := nextCursor.FindSubmatch(end); found != nil {
				cursor = string(found[1])
			}
			return err
		})
		if pages++; err != nil || cursor == "" {
			return messages, pages, err
		}
	}
}

// count is how often a text comes in what is read, and the last 200 bytes or more of it.
// Neither decoding nor keeping it all: the race detector makes that take minutes.
func count(in io.Reader, text string) (n int, end []byte, err error) {
	const kept = 200
	room := make([]byte, 64<<10)
	for used := 0; ; {
		m, err := in.Read(room[used:])
		used += m
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return n + bytes.Count(room[:used], []byte(text)), room[:used], err
		}
		if used < len(room) {
			continue
		}
		// What begins in the rest is counted with what follows.
		n += bytes.Count(room[:used-kept+len(text)-1], []byte(text))
		used = copy(room, room[used-kept:])
	}
}

// atOnce calls f n times side by side, and returns when all are over.
func atOnce(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := f(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
}

// Large runs, and their history in one request.
func TestMemoryLargeRuns(t *testing.T) {
	const runs, size = 24, 1000 << 10 // as large as a message may be
	h := startTight(t)
	key := h.runKey("app")
	text := strings.Repeat("large ", size/6)
	for i := range runs {
		body := fmt.Sprintf(`{"threadId":"t","runId":"r%d","messages":[{"id":"m%d","role":"user","content":"%s"}]}`, i, i, text)
		req, err := http.NewRequest(http.MethodPost, h.url+"/api/v1/agent/run", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("run %d: %d, %v", i, resp.StatusCode, err)
		}
	}
	h.kept("runs")
	messages, pages, err := h.walk("/api/v1/agent/history?threadId=t&limit=500", key, "createdAt")
	t.Logf("%d messages on %d pages", messages, pages)
	if err != nil || messages != 2*runs {
		t.Errorf("found %d messages on %d pages, %v", messages, pages, err)
	}
	h.kept("history")
}

const (
	talks     = 5  // conversations of the host of TestMemoryLargeMessages, each with …
	perTalk   = 40 // … messages of …
	largeText = 240 << 10
)

var runAndThread = regexp.MustCompile(`"runId":"([^"]+)".*"threadId":"([^"]+)"`)

// seed queues the messages.
func (h *tight) seed() {
	text := strings.Repeat("long ", largeText/5)
	atOnce(h.t, talks, func(i int) error {
		for range perTalk {
			if status, answer, err := h.try("POST", "/channels/c/messages", fmt.Sprintf(`{"conversation_id":"c%d","text":"%s"}`, i, text)); err != nil || status != http.StatusAccepted {
				return fmt.Errorf("send: %d %s %w", status, answer, err)
			}
		}
		return nil
	})
}

// What reads many messages of 240 KB: pages, searches, pages of the console, streams
// of events that come back, and agents that are given the history.
func TestMemoryLargeMessages(t *testing.T) {
	var asked sync.Map // conversations, by their first question
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		roles, end, err := count(r.Body, `"role":`)
		in := runAndThread.FindSubmatch(end)
		if err != nil || in == nil {
			t.Errorf("agent: %s, %v", end, err)
			return
		}
		asked.Store(string(in[2]), roles)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"RUN_STARTED\",\"threadId\":%q,\"runId\":%q}\n\ndata: {\"type\":\"RUN_FINISHED\",\"threadId\":%q,\"runId\":%q}\n\n",
			in[2], in[1], in[2], in[1])
	}))
	defer agent.Close()
	h := startTight(t)
	h.must(nil, "POST", "/agents", fmt.Sprintf(`{"name":"model","kind":"agui","config":{"url":%q,"allow_private":true}}`, agent.URL))
	token := h.channel("c", `,"queue":true,"agent":"model"`)
	var first struct{ ID string }
	h.must(&first, "POST", "/channels/c/messages", `{"conversation_id":"first","text":"first"}`)
	h.seed()
	h.kept("messages sent")

	atOnce(t, talks, func(i int) error {
		n, pages, err := h.walk("/api/v1/channels/c/messages?limit=50&conversation_id=c"+strconv.Itoa(i), h.key, "session_key")
		if err == nil && (n != perTalk || pages < 2) {
			err = fmt.Errorf("%d messages on %d pages", n, pages)
		}
		return err
	})
	h.kept("pages")
	for _, path := range []string{"/channels/c/messages?limit=500", "/search?limit=500&q=long", "/events", "/events?channel=c"} {
		h.deaf(path, first.ID)
		h.kept("deaf readers of " + path)
	}
	for _, only := range []string{"", "?channel=c"} {
		atOnce(t, 2, func(int) error { return h.resume(only, first.ID, talks*perTalk) })
		h.kept("event streams" + only)
	}

	adapter := h.reader(token)
	adapter.read(talks*perTalk + 1) // the queue
	h.kept("queue")
	for i := range talks {
		adapter.say("c"+strconv.Itoa(i), "question")
	}
	go adapter.read(1 << 30) // what comes until it is closed
	await.Until(t, "all agents are asked", func() bool {
		n := 0
		asked.Range(func(_, _ any) bool { n++; return true })
		return n == talks
	})
	asked.Range(func(thread, messages any) bool {
		if messages.(int) < 2 {
			t.Errorf("thread %v is given %d messages", thread, messages)
		}
		return true
	})
	h.kept("agents")
}

// reader is an adapter that reads frames without looking at them: decoding them takes
// minutes under the race detector, in which it answers no ping.
type reader struct {
	t    *testing.T
	conn *websocket.Conn
}

func (h *tight) reader(token string) *reader {
	h.t.Helper()
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.url, "http")+wire.Path, http.Header{"X-Bridge-Token": {token}})
	if err != nil {
		h.t.Fatal(err)
	}
	_ = resp.Body.Close()
	h.t.Cleanup(func() { _ = conn.Close() })
	r := &reader{h.t, conn}
	if err := conn.WriteJSON(frame{"type": "register", "platform": "test", "capabilities": []string{"text"}}); err != nil {
		h.t.Fatal(err)
	}
	r.read(1) // register_ack
	return r
}

// read reads n frames, or all that come until the connection is closed.
func (r *reader) read(n int) {
	for range n {
		_ = r.conn.SetReadDeadline(await.Deadline())
		_, in, err := r.conn.NextReader()
		if err == nil {
			_, err = io.Copy(io.Discard, in)
		}
		if err != nil {
			return
		}
	}
}

func (r *reader) say(conversation, text string) {
	r.t.Helper()
	if err := r.conn.WriteJSON(frame{"type": "message", "conversation_id": conversation, "user_id": "alice", "text": text}); err != nil {
		r.t.Fatal(err)
	}
}

// deaf asks many times at once, and reads no more than the first byte of what it is
// answered, until each is answered.
func (h *tight) deaf(path, lastEvent string) {
	atOnce(h.t, 60, func(int) error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			return err
		}
		h.t.Cleanup(func() { _ = conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := fmt.Fprintf(conn, "GET /api/v1%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nLast-Event-ID: %s\r\n\r\n", path, h.key, lastEvent); err != nil {
			return err
		}
		_ = conn.SetReadDeadline(time.Now().Add(await.Limit))
		_, err = io.ReadFull(conn, make([]byte, 1))
		return err
	})
}

// resume reads a stream of events from behind a message until it has as many
// created messages as are expected, and comes back whenever it ends.
func (h *tight) resume(query, last string, expected int) error {
	for n := 0; n < expected; {
		err := h.get("/api/v1/events"+query, h.key, http.Header{"Last-Event-ID": {last}}, func(body io.Reader) error {
			in := bufio.NewReaderSize(body, 1<<20)
			for n < expected {
				line, err := in.ReadSlice('\n')
				if err != nil {
					return fmt.Errorf("after %d messages: %w", n, err)
				}
				if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
					last = string(bytes.TrimSpace(id))
					n++
				}
				if string(line) == "event: gap\n" {
					return nil // it comes back
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// memory is a line of the host's /proc/PID/status in MiB: VmRSS, or VmHWM for
// the most there ever was.
func (h *host) memory(what string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range lines(string(text)) {
		var kb int
		if _, err := fmt.Sscanf(line, what+": %d kB", &kb); err == nil {
			return kb >> 10
		}
	}
	h.t.Fatalf("no %s in /proc/PID/status", what)
	return 0
}
