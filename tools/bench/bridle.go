package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"
)

// kindBridle is the kind of an agent that dials in by Socket.IO.
const kindBridle = "bridle"

// Of a host that speaks Bridle, for as long as it is measured.
const (
	bridleSecret = "a-secret-of-the-bench-that-is-long-enough"
	bridleKey    = "a-key-of-the-bench-that-opens-all-bridle-agents"
)

func bridleEnv() []string {
	return []string{"PONTOON_BRIDLE_JWT_SECRET=" + bridleSecret, "PONTOON_BRIDLE_API_KEY=" + bridleKey}
}

// bridleAgent is the name of an agent. The host makes those that come with its key.
func bridleAgent(i int) string { return fmt.Sprintf("bench-%s-%d", kindBridle, i) }

// socket is one namespace over a connection of Socket.IO. One goroutine uses it.
type socket struct {
	ws        *websocket.Conn
	conn      *corked
	namespace string
	event     []byte // how an event begins
}

// The packets of Engine.IO and Socket.IO that are needed here.
const (
	packetOpen      = "0"
	packetPing      = "2"
	packetPong      = "3"
	packetConnect   = "40"
	packetEvent     = "42"
	packetConnError = "44"
)

// openSocket opens a connection and its namespace.
func openSocket(ctx context.Context, host, namespace string, auth map[string]string) (s *socket, err error) {
	ws, conn, err := dial(ctx, "ws"+strings.TrimPrefix(host, "http")+"/socket.io/?EIO=4&transport=websocket", "")
	if err != nil {
		return nil, err
	}
	s = &socket{ws, conn, namespace, []byte(packetEvent + namespace + ",")}
	defer func() {
		if err != nil {
			_ = ws.Close()
		}
	}()
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	said, err := json.Marshal(auth)
	if err != nil {
		return nil, fmt.Errorf("encode handshake: %w", err)
	}
	if err := s.await([]byte(packetOpen + "{")); err != nil {
		return nil, err
	}
	if err := s.write([]byte(packetConnect + namespace + "," + string(said))); err != nil {
		return nil, err
	}
	if err := s.await([]byte(packetConnect + namespace)); err != nil {
		return nil, err
	}
	return s, conn.SetDeadline(time.Time{})
}

func (s *socket) write(packet []byte) error { return s.ws.WriteMessage(websocket.TextMessage, packet) }

// emit sends an event with one argument in JSON. It leaves when the socket is read next.
func (s *socket) emit(name string, data []byte) error {
	return s.write(fmt.Appendf(nil, `%s["%s",%s]`, s.event, name, data))
}

// await reads up to a packet that begins so.
func (s *socket) await(begin []byte) error {
	for {
		packet, err := s.packet()
		if err != nil {
			return fmt.Errorf("open %s: %w", s.namespace, err)
		}
		if bytes.HasPrefix(packet, []byte(packetConnError)) || bytes.Contains(packet, []byte(`["bridle_error"`)) {
			return fmt.Errorf("open %s: refused: %.200s", s.namespace, packet)
		}
		if bytes.HasPrefix(packet, begin) {
			return nil
		}
	}
}

// packet reads one, and answers pings.
func (s *socket) packet() ([]byte, error) {
	for {
		_, packet, err := s.ws.ReadMessage()
		if err != nil || string(packet) != packetPing {
			return packet, err
		}
		if err := s.write([]byte(packetPong)); err != nil {
			return nil, err
		}
	}
}

// next reads the next event of a name: its JSON, from the name on.
func (s *socket) next(names ...string) ([]byte, error) {
	for {
		packet, err := s.packet()
		if err != nil {
			return nil, err
		}
		event, ok := bytes.CutPrefix(packet, s.event)
		for _, name := range names {
			if ok && bytes.HasPrefix(event, []byte(`["`+name+`"`)) {
				return event, nil
			}
		}
	}
}

// serveBridle is agents of kind bridle that answer what they are asked, until ctx ends.
func serveBridle(ctx context.Context, host, count string, w io.Writer) error {
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > dialers {
		return fmt.Errorf("agents: found %q, expected 1 to %d", count, dialers)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // closes the connections, which ends who is waited for
	for i := range n {
		s, err := openSocket(ctx, host, "/ws/agent", map[string]string{"apiKey": os.Getenv(agentKey), "agentId": bridleAgent(i)})
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = s.conn.Close() })
		if err := s.emit("ping", []byte("{}")); err != nil {
			return err
		}
		if err := s.await([]byte(string(s.event) + `["pong"`)); err != nil { // then it is there for questions
			return err
		}
		wg.Go(func() {
			_ = s.answer() // who waits for an answer sees it
			_ = s.ws.Close()
		})
	}
	fmt.Fprintf(w, "Agents%s%s\n", listensOn, host)
	<-ctx.Done()
	return nil
}

// answer answers every question with its text.
func (s *socket) answer() error {
	for {
		event, err := s.next("message")
		if err != nil {
			return err
		}
		var name string
		var asked struct {
			ClientID string `json:"clientId"`
			Text     string `json:"text"`
		}
		if err := json.Unmarshal(event, &[]any{&name, &asked}); err != nil {
			return fmt.Errorf("read question: %w", err)
		}
		said, err := json.Marshal(asked)
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		if err := s.emit("message", said); err != nil {
			return err
		}
	}
}

// openBridle measures browsers of Bridle that ask agents of Bridle. There is no other
// server of it to compare with.
func openBridle(ctx context.Context, b *httpBed, s Scenario) ([]way, error) {
	return []way{{"host", func(ctx context.Context, _ int) (Sample, error) {
		// Agents come anew each time: the host reads 50 packets a second of a connection
		// once that has said 200.
		agents, err := spawnAgent(ctx, bridleKey, kindBridle, b.host.url, strconv.Itoa(s.Agents))
		if err != nil {
			return Sample{}, err
		}
		defer agents.stop()
		run := b.run()
		clients := make([]*caller, s.Conns)
		for i := range clients {
			c, s, err := browse(ctx, b.host.url, bridleAgent(i%s.Agents), run, i, s.Size)
			if err != nil {
				return Sample{}, err
			}
			defer func() { _ = s.ws.Close() }()
			clients[i] = c
		}
		return drive(ctx, target{name: "host", pid: b.host.pid()}, clients, 0, b.span())
	}}}, nil
}

// browse is a browser: a user of its own, who speaks to an agent.
func browse(ctx context.Context, host, agent string, run, conn, size int) (*caller, *socket, error) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": fmt.Sprintf("user-%05d", conn), "exp": time.Now().Add(24 * time.Hour).Unix()}).SignedString([]byte(bridleSecret))
	if err != nil {
		return nil, nil, fmt.Errorf("make token: %w", err)
	}
	s, err := openSocket(ctx, host, "/ws/client", map[string]string{"token": token, "agentId": agent})
	if err != nil {
		return nil, nil, err
	}
	id := idOf(run, conn, 0)
	said, err := json.Marshal(map[string]string{"text": padded(id, size)})
	if err != nil {
		return nil, nil, fmt.Errorf("encode question: %w", err)
	}
	c := newCaller(said, id)
	c.expire = func(at time.Time) { _ = s.conn.SetDeadline(at) }
	c.ask = func(question []byte) ([]byte, error) {
		if err := s.emit("message", question); err != nil {
			return nil, err
		}
		answer, err := s.next("message", "bridle_error")
		if err == nil && bytes.HasPrefix(answer, []byte(`["bridle_error"`)) {
			return nil, &refused{string(answer)}
		}
		return answer, err
	}
	// The answer says its text, and again as a part.
	c.answers = func(answer, id []byte) int { return min(1, bytes.Count(answer, id)) }
	return c, s, nil
}
