package webchat

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	// maxStreams bounds open pages, all browsers together.
	maxStreams = 256
	// maxRequest bounds a frame of the browser, all of it escaped.
	maxRequest = wire.MaxFrame + 4096

	helloWithin = 10 * time.Second
	writeWithin = 10 * time.Second
	// tick is how often a silent stream says that it lives, and asks the browser
	// to; deaf is when the browser has not answered two of them.
	tick = 20 * time.Second
	deaf = 50 * time.Second
)

// stream is one open page.
type stream struct {
	wake chan struct{} // a token: something changed

	mu   sync.Mutex // for writing
	conn *websocket.Conn
}

// conversationOf is what the host learns of a key: 120 bits of its hash.
func conversationOf(key string) string {
	sum := sha256.Sum256([]byte("pontoon webchat conversation " + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// serveStream is one page from its first frame to its end.
func (s *site) serveStream(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") == "" { // browsers always send it
		http.Error(w, "Origin: absent, expected this page itself.", http.StatusForbidden)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	s.streams.Add(1)
	defer s.streams.Done()
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // guard has done it
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	defer func() { _ = conn.Close() }()
	st := &stream{wake: make(chan struct{}, 1), conn: conn}
	st.bye(s.talk(st))
}

// talk serves the page until it goes, does what it must not, or Run ends. It
// returns what to close with.
func (s *site) talk(st *stream) (code int, why string) {
	st.conn.SetReadLimit(maxRequest)
	_ = st.conn.SetReadDeadline(time.Now().Add(helloWithin))
	hello, err := st.read()
	if err != nil {
		return websocket.ClosePolicyViolation, err.Error()
	}
	if hello.Type != "hello" || !keyForm.MatchString(hello.Key) {
		return websocket.ClosePolicyViolation, "expected a frame hello with a key of 32 hexadecimal digits"
	}
	conv, err := s.store.attach(conversationOf(hello.Key), st)
	if err != nil {
		return websocket.CloseTryAgainLater, err.Error()
	}
	defer s.store.detach(conv, st)

	var writer sync.WaitGroup
	gone := make(chan struct{})
	defer writer.Wait()
	defer close(gone)
	writer.Go(func() {
		s.feed(st, conv, hello, gone)
		if s.ctx.Err() != nil {
			st.bye(websocket.CloseGoingAway, "the adapter stops")
		}
		_ = st.conn.Close() // ends the reader too
	})
	alive := func() { _ = st.conn.SetReadDeadline(time.Now().Add(deaf)) }
	st.conn.SetPongHandler(func(string) error { alive(); return nil })
	alive()
	for {
		req, err := st.read()
		if err != nil {
			return websocket.ClosePolicyViolation, err.Error()
		}
		alive()
		no := s.take(conv, req)
		if no != nil && st.write(mustJSON(map[string]any{
			"type": "refused", "id": req.ID, "reason": no.Reason, "retry": no.Retry.Milliseconds(),
		})) != nil {
			return websocket.CloseNormalClosure, ""
		}
	}
}

// feed writes what changes until the page or Run is gone.
func (s *site) feed(st *stream, conv *conversation, hello *request, gone <-chan struct{}) {
	seen := hello.Since
	if hello.Epoch != s.store.epoch {
		seen = 0
	}
	beat := time.NewTicker(tick)
	defer beat.Stop()
	if st.write(mustJSON(map[string]any{"type": "welcome", "epoch": s.store.epoch, "max": maxText})) != nil {
		return
	}
	ready, typed := false, false
	for {
		frames, latest, typing := s.store.since(conv, seen)
		seen = latest
		if typing != typed {
			typed = typing
			frames = append(frames, mustJSON(map[string]any{"type": "typing", "on": typing}))
		}
		if !ready {
			ready = true
			frames = append(frames, []byte(`{"type":"ready"}`))
		}
		if st.write(frames...) != nil {
			return
		}
		select {
		case <-st.wake:
		case <-beat.C:
			if st.write([]byte(`{"type":"tick"}`)) != nil || st.ping() != nil {
				return
			}
		case <-gone:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (st *stream) write(frames ...[]byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, f := range frames {
		_ = st.conn.SetWriteDeadline(time.Now().Add(writeWithin))
		if err := st.conn.WriteMessage(websocket.TextMessage, f); err != nil {
			return err
		}
	}
	return nil
}

func (st *stream) ping() error {
	return st.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin))
}

// bye says why the stream ends; the page may be gone already.
func (st *stream) bye(code int, why string) {
	why = why[:min(len(why), 120)] // a control frame holds 125 bytes
	_ = st.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(time.Second))
}

// read returns the next frame. An error ends the stream; its text may be shown.
func (st *stream) read() (*request, error) {
	_, frame, err := st.conn.ReadMessage()
	if err != nil {
		return nil, errors.New("the page is gone")
	}
	return decodeRequest(frame)
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("webchat: " + err.Error()) // strings and numbers
	}
	return b
}
