package socketio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

const wait = await.Limit

// eventually waits for a condition; what says which.
var eventually = await.Until

// echo is a namespace that sends events back, and knows a few more.
type echo struct {
	mu     sync.Mutex // guards what follows
	open   int
	closed int
	socket *Socket // the newest
	pace   Pace    // of those that come; nil = packets are counted
}

type echoSocket struct {
	e *echo
	s *Socket
}

func (e *echo) Open(s *Socket, auth json.RawMessage) Handler {
	if string(auth) == `{"refuse":true}` {
		event, _ := Event("no", "you may not")
		s.Emit(event)
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	e.socket = s
	if e.pace != nil {
		s.PaceBy(e.pace)
	}
	return &echoSocket{e, s}
}

func (h *echoSocket) Event(name string, args []json.RawMessage) error {
	switch name {
	case "panic":
		panic("a defect")
	case "leave":
		h.s.Close()
	case "drop":
		event, _ := Event("last", nil)
		h.s.Emit(event)
		h.s.Drop("asked for")
	case "flood":
		event, _ := Event("flood", strings.Repeat("x", 1<<20))
		for range 64 {
			h.s.Emit(event)
		}
	case "bad":
		return errors.New("not taken")
	default:
		event, err := Event(name, args)
		if err != nil {
			return err
		}
		h.s.Emit(event)
	}
	return nil
}

func (h *echoSocket) Closed() {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	h.e.closed++
}

func (e *echo) counts() (open, closed int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open, e.closed
}

// server is a running server with the namespace /echo.
type server struct {
	*Server
	t   *testing.T
	url string
	ns  *echo
}

func start(t *testing.T, o Options) *server {
	t.Helper()
	ns := &echo{}
	o.Namespaces = map[string]Namespace{"/echo": ns}
	s := New(o)
	web := httptest.NewServer(s)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(ctx) })
	t.Cleanup(func() {
		stop()
		wg.Wait()
		s.Close()
		web.CloseClientConnections()
		web.Close()
		http.DefaultClient.CloseIdleConnections()
		if open, closed := ns.counts(); open != closed {
			t.Errorf("%d handlers, of which %d were closed", open, closed)
		}
		if s.Len() != 0 {
			t.Errorf("%d connections are left", s.Len())
		}
	})
	return &server{s, t, web.URL + Path, ns}
}

// socket is a raw client by WebSocket.
type socket struct {
	t  *testing.T
	ws *websocket.Conn
}

func (s *server) dial(query string) *socket {
	s.t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.url, "http")+"?EIO=4&transport=websocket"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	s.t.Cleanup(func() { _ = ws.Close() })
	return &socket{s.t, ws}
}

func (c *socket) send(packet string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(packet)); err != nil {
		c.t.Fatal(err)
	}
}

// next is the next packet; "" = the connection has ended.
func (c *socket) next() string {
	c.t.Helper()
	if err := c.ws.SetReadDeadline(time.Now().Add(wait)); err != nil {
		c.t.Fatal(err)
	}
	_, b, err := c.ws.ReadMessage()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("nothing comes, and the connection does not end")
	}
	if err != nil {
		return ""
	}
	return string(b)
}

func (c *socket) expect(prefix string) string {
	c.t.Helper()
	got := c.next()
	if !strings.HasPrefix(got, prefix) || prefix == "" && got != "" {
		c.t.Fatalf("got %.200q, expected %q", got, prefix)
	}
	return got
}

func (c *socket) join() {
	c.t.Helper()
	c.expect("0{")
	c.send("40/echo,{}")
	c.expect("40/echo,{")
}

// get and post are a raw client by polling.
func (s *server) get(query string) (int, string) {
	s.t.Helper()
	return s.do("GET", "?EIO=4&transport=polling"+query, "", "")
}

func (s *server) post(query, body string) (int, string) {
	s.t.Helper()
	return s.do("POST", "?EIO=4&transport=polling"+query, "", body)
}

func (s *server) do(method, query, origin, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+query, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// poll opens a session by polling, and returns what names it.
func (s *server) poll() string {
	s.t.Helper()
	_, body := s.get("")
	var open struct {
		SID        string
		Upgrades   []string
		MaxPayload int
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(body, "0")), &open); err != nil || open.SID == "" || len(open.Upgrades) != 1 || open.MaxPayload != MaxPayload {
		s.t.Fatalf("%s: %v", body, err)
	}
	return "&sid=" + open.SID
}

func TestWebSocket(t *testing.T) {
	s := start(t, Options{})
	c := s.dial("")
	c.join()
	c.send(`42/echo,["say",{"n":12345678901234567890.10}]`)
	if got := c.next(); got != `42/echo,["say",[{"n":12345678901234567890.10}]]` {
		t.Errorf("not as it was: %s", got)
	}
	c.send(`42/echo,7["bad"]`)
	c.expect(`43/echo,7[{"error":"not taken","ok":false}]`)
	c.send(`42/elsewhere,["say"]`) // not open: ignored
	c.send(`40/elsewhere,`)
	c.expect(`44/elsewhere,{"message":"Invalid namespace"}`)
	c.send(`42/echo,["leave"]`)
	c.expect("41/echo,")
	c.send(`40/echo,{"refuse":true}`)
	c.expect("40/echo,")
	c.expect(`42/echo,["no","you may not"]`)
	c.expect("41/echo,")
	c.send(`40/echo,`)
	c.expect("40/echo,")
	c.send(`42/echo,["drop"]`)
	c.expect(`42/echo,["last",null]`)
	c.expect("")
	eventually(t, "all handlers are closed", func() bool { open, closed := s.ns.counts(); return open == 2 && closed == 2 })
}

func TestPolling(t *testing.T) {
	s := start(t, Options{})
	q := s.poll()
	if status, body := s.post(q, "40/echo,\x1e42/echo,[\"one\"]\x1e42/echo,[\"two\"]"); status != 200 || body != "ok" {
		t.Fatal(status, body)
	}
	_, body := s.get(q)
	packets := strings.Split(body, "\x1e")
	if len(packets) != 3 || !strings.HasPrefix(packets[0], "40/echo,{") || packets[2] != `42/echo,["two",[]]` {
		t.Fatalf("%q", packets)
	}
	later := make(chan string, 1)
	go func() { _, body := s.get(q); later <- body }()
	if status, _ := s.post(q, `42/echo,["three"]`); status != 200 {
		t.Fatal(status)
	}
	if got := await.Value(t, "the poll is answered", later); got != `42/echo,["three",[]]` {
		t.Errorf("%q", got)
	}
	if status, _ := s.post(q, "1"); status != 400 {
		t.Errorf("closed by the client: %d", status)
	}
	if status, body := s.get(q); status != 400 || !strings.Contains(body, "Session ID unknown") {
		t.Errorf("%d %s", status, body)
	}
}

// A client that was told to leave may come back at once.
func TestBackAtOnce(t *testing.T) {
	const times = 20
	s := start(t, Options{Burst: 1000})
	q := s.poll()
	body := "40/echo,"
	for range times {
		body += "\x1e42/echo,[\"leave\"]\x1e42/echo,[\"ignored\"]\x1e40/echo,"
	}
	if status, body := s.post(q, body+"\x1e42/echo,[\"there\"]"); status != 200 {
		t.Fatal(status, body)
	}
	_, body = s.get(q)
	packets := strings.Split(body, "\x1e")
	if len(packets) != 2*times+2 || packets[2*times+1] != `42/echo,["there",[]]` {
		t.Fatalf("%q", packets)
	}
	eventually(t, "all handlers but the last are closed", func() bool {
		open, closed := s.ns.counts()
		return open == times+1 && closed == times
	})
}

func TestUpgrade(t *testing.T) {
	s := start(t, Options{})
	q := s.poll()
	s.post(q, "40/echo,")
	s.get(q)
	for _, wrong := range []string{"2other", "5", "42/echo,[\"x\"]"} { // the session goes on by polling
		c := s.dial(q)
		c.send(wrong)
		c.expect("")
		eventually(t, "it may try again", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, c := range s.conns {
				c.mu.Lock()
				defer c.mu.Unlock()
				return !c.probing
			}
			return false
		})
	}
	polled := make(chan string, 1)
	go func() { _, body := s.get(q); polled <- body }()
	c := s.dial(q)
	c.send("2probe")
	c.expect("3probe")
	if got := await.Value(t, "the poll is answered", polled); got != "6" {
		t.Fatalf("the poll that waits is answered with %q", got)
	}
	s.post(q, `42/echo,["before"]`)
	c.send("5")
	c.expect(`42/echo,["before",[]]`)
	c.send(`42/echo,["after"]`)
	c.expect(`42/echo,["after",[]]`)
	if status, _ := s.get(q); status != 400 {
		t.Errorf("a poll of what is a WebSocket: %d", status)
	}
}

// What a client sends before it may, or that is nothing, ends its own connection.
func TestBadClients(t *testing.T) {
	s := start(t, Options{})
	for name, packet := range map[string]string{
		"errPing": "2", "errType": "9", "errBinaryText": "bAAAA", "errEmpty": "", "errJSON": `42/echo,["a"`, "errEvent": `42/echo,{}`, "errBinary": `451-/echo,["a"]`,
		"errTwice": "40/echo,", "errAuth": "40/echo,[]", "errLarge": "4" + strings.Repeat("x", MaxPayload), "panic": `42/echo,["panic"]`, "leaves": "1",
		"errUTF8": "42/echo,[\"\xff\"]",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial("")
			c.t = t
			if name == "errAuth" {
				c.expect("0{")
			} else {
				c.join()
			}
			c.send(packet)
			c.expect("")
		})
	}
	for _, packets := range []string{strings.Repeat("3", 1), "6"} { // signs of life at any time
		c := s.dial("")
		for range 100 {
			c.send(packets)
		}
		c.join()
	}
	q := s.poll()
	if status, _ := s.post(q, strings.Repeat("x", MaxPayload+1)); status != 413 {
		t.Errorf("a large body: %d", status)
	}
	q = s.poll()
	if status, _ := s.post(q, "4\xff"); status != 400 {
		t.Errorf("no UTF-8: %d", status)
	}
	for query, status := range map[string]int{
		"?transport=polling": 400, "?EIO=3&transport=polling": 400, "?EIO=4": 400, "?EIO=4&transport=webtransport": 400, "?EIO=4&transport=polling&sid=x": 400,
		"?EIO=4&transport=websocket": 400, "?EIO=4&transport=websocket&sid=x": 400,
	} {
		if got, body := s.do("GET", query, "", ""); got != status {
			t.Errorf("%s: %d %s", query, got, body)
		}
	}
	if status, _ := s.post("", "40"); status != 400 {
		t.Errorf("a session that begins with a POST: %d", status)
	}
	eventually(t, "only those are left that did nothing wrong", func() bool { return s.Len() == 2 })
}

func TestOrigins(t *testing.T) {
	s := start(t, Options{})
	for origin, status := range map[string]int{"": 200, "https://evil.example.com": 403, "null": 403, strings.TrimSuffix(s.url, Path): 200} {
		if got, _ := s.do("GET", "?EIO=4&transport=polling", origin, ""); got != status {
			t.Errorf("%q: %d, expected %d", origin, got, status)
		}
	}
}

func TestLimits(t *testing.T) {
	s := start(t, Options{MaxPerAddress: 2, MaxConns: 3})
	s.poll()
	c := s.dial("")
	if status, _ := s.get(""); status != http.StatusTooManyRequests {
		t.Errorf("a third one of an address: %d", status)
	}
	_ = c.ws.Close()
	eventually(t, "there is room again", func() bool { status, _ := s.get(""); return status == 200 })
}

// Who is silent, or opens nothing, or does not read is sent away.
func TestSilence(t *testing.T) {
	// Who answers in time stays. On a busy machine that takes longer.
	for timeout := 60 * time.Millisecond; ; timeout *= 4 {
		s := start(t, Options{PingInterval: timeout * 2 / 3, PingTimeout: timeout, ConnectTimeout: wait})
		c := s.dial("")
		c.expect("0{")
		c.send("40/echo,{}")
		pings := 0
		for got := c.next(); got != ""; got = c.next() {
			if got != "2" {
				continue
			}
			if pings++; pings <= 3 {
				_ = c.ws.WriteMessage(websocket.TextMessage, []byte("3"))
			}
		}
		if pings == 4 { // the last was not answered
			break
		}
		if timeout > wait {
			t.Fatalf("%d pings, want 4: who answers is sent away", pings)
		}
	}

	var s *server
	for timeout := 50 * time.Millisecond; ; timeout *= 4 { // on a busy machine it may be over before anything was said
		s = start(t, Options{ConnectTimeout: timeout})
		c := s.dial("")
		got := c.next()
		if strings.HasPrefix(got, "0{") {
			c.expect("")
			break
		}
		if got != "" || timeout > wait {
			t.Fatalf("got %.200q, expected that it opens", got)
		}
	}
	q := s.poll()
	eventually(t, "a session that opens nothing goes", func() bool { return s.Len() == 0 })
	if status, _ := s.get(q); status != 400 {
		t.Error(status)
	}

	s = start(t, Options{})
	q = s.poll()
	s.post(q, "40/echo,")
	s.post(q, `42/echo,["flood"]`)
	eventually(t, "who does not read goes", func() bool { return s.Len() == 0 })
}

// A client that sends too fast is not read, and loses nothing.
func TestRate(t *testing.T) {
	s := start(t, Options{Rate: 200, Burst: 1})
	c := s.dial("")
	c.join()
	began := time.Now()
	for i := range 20 {
		c.send(fmt.Sprintf(`42/echo,["n%d"]`, i))
	}
	for i := range 20 {
		c.expect(fmt.Sprintf(`42/echo,["n%d",[]]`, i))
	}
	if took := time.Since(began); took < 80*time.Millisecond {
		t.Errorf("20 packets at 200 a second took %s", took)
	}
}

// Close ends what is under way, in all its forms.
func TestClose(t *testing.T) {
	s := start(t, Options{})
	c := s.dial("")
	c.join()
	q := s.poll()
	polled := make(chan int, 1)
	go func() { status, _ := s.get(q); polled <- status }()
	probing := s.dial(s.poll())
	s.Close()
	c.expect("")
	probing.expect("")
	if status := await.Value(t, "the poll is answered", polled); status != 400 {
		t.Error(status)
	}
	if status, _ := s.get(""); status != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d", status)
	}
}
