package agent_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A key that is revoked or expires, and an agent that is disabled, end the
// connection at once.
func TestRevoked(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	row := b.agent("one")
	keys, err := b.store.Credentials(t.Context(), ledger.OfAgent(row.Key), 0, 10)
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	a := b.connect("one", "")
	b.roster.Expire(row.Key, keys[0].ID, time.Now()) // all but this one
	b.roster.Expire(row.Key, 0, time.Now().Add(300*time.Millisecond))
	a.wantClose(4003)
	a = b.connect("one", "")
	if err := b.store.RevokeCredential(t.Context(), ledger.OfAgent(row.Key), keys[0].ID, ledger.Change{Actor: "test", Action: "agent.key.revoke"}); err != nil {
		t.Fatal(err)
	}
	b.roster.Revoke(row.Key, keys[0].ID)
	a.wantClose(4003)
	p := b.dial(agentwire.Path, http.Header{"Authorization": {"Bearer " + secret + "one"}})
	p.write(`{"type":"hello"}`)
	p.shows("hello_ack", `"error":"invalid key"`)
	p.wantClose(1008)
	two := b.agent("two")
	a = b.connect("two", "")
	two.Enabled = false
	if two, err = b.store.UpdateAgent(t.Context(), two, ledger.Change{Actor: "test", Action: "agent.update"}); err != nil {
		t.Fatal(err)
	}
	b.roster.Set(two)
	a.wantClose(4003)
}

// A revoked key ends the connection at once, also of an agent that does not read: what
// waits for it, more than any socket holds, is not written any more.
func TestRevokedGetsNothingMore(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	row := b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	large := strings.Repeat("x", wire.MaxFrame-1000)
	for i := range agentwire.Window {
		user.write(`{"type":"message","conversation_id":"` + strconv.Itoa(i) + `","text":"` + large + `"}`)
	}
	for range agentwire.Window {
		a.turn(large)
	}
	_ = a.ws.Close()
	a = b.deaf("one", "") // it gets all open turns
	turns := agentwire.Window / 4
	for range turns {
		a.turn(large)
	}
	keys, err := b.store.Credentials(t.Context(), ledger.OfAgent(row.Key), 0, 10)
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	b.roster.Revoke(row.Key, keys[0].ID)
	for {
		if _, err := a.next(); err != nil { // a close frame, if there was room for one
			break
		}
		turns++
	}
	if turns == agentwire.Window {
		t.Error("all that waited when the key was revoked was written")
	}
}

// An agent that comes back gets all of its turns at once, however large they are.
func TestReconnectWithLargeTurns(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	large := strings.Repeat("x", wire.MaxFrame-1000)
	for i := range agentwire.Window {
		user.write(`{"type":"message","conversation_id":"` + strconv.Itoa(i) + `","text":"` + large + `"}`)
	}
	for round := range 3 {
		for range agentwire.Window {
			if q := a.turn(large); q.Repeated != (round > 0) {
				t.Fatalf("round %d: repeated is %v", round, q.Repeated)
			}
		}
		_ = a.ws.Close()
		a = b.connect("one", "")
	}
}

// A peer that only listens is pinged, and one that is not heard is dropped.
func TestSilence(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{PingInterval: 100 * time.Millisecond, SilenceTimeout: 2 * time.Second})
	b.agent("one")
	b.agent("two")
	deaf := b.deaf("one", "")
	deaf.ws.SetPingHandler(func(string) error { return nil })
	alive := b.deaf("two", "")
	pings := 0
	alive.ws.SetPingHandler(func(data string) error {
		pings++
		if pings == 30 {
			alive.write(`{"type":"ping"}`)
		}
		return alive.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
	})
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, err := deaf.next()
		if !websocket.IsCloseError(err, 1008) {
			t.Errorf("who is not heard is ended with %v", err)
		}
	}()
	alive.shows("pong")
	await.Value(t, "who is not heard is closed", closed)
}

// More turns than the window wait in the host, and all are answered.
func TestWindow(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	const n = agentwire.Window + 10
	for i := range n {
		user.write(`{"type":"message","conversation_id":"c` + strconv.Itoa(i) + `","text":"x"}`)
	}
	var turns []*agentwire.Turn
	for range agentwire.Window {
		turns = append(turns, a.turn("x"))
	}
	a.write(`{"type":"ping"}`)
	a.shows("pong") // and no turn more
	for i := range n {
		a.say("message", turns[i], `,"text":"y"`)
		user.shows("send", `"y"`)
		if len(turns) < n {
			turns = append(turns, a.turn("x"))
		}
	}
}

// An agent that does not read is closed, and what it had is another's.
func TestSlowAgent(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.channel("irc", "one")
	a := b.deaf("one", "")
	long := strings.Repeat("x", 4000) // that each answer repeats
	done := make(chan struct{})
	go func() { // until the host closes it
		defer close(done)
		for a.ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"message","turn_id":"t","text":"","message_id":"`+long+`"}`)) == nil {
		}
	}()
	b.eventually("the agent is away", func() bool {
		found, _ := b.roster.Agent("one")
		return !found.(*agent.Desk).Connected()
	})
	await.Value(t, "its writes fail", done)
}

// A host that stops tells its agents to come back, and hands over again what they
// had not answered.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	user.asks("hello")
	q := a.turn("hello")
	b = b.again()
	a.wantClose(1001)
	a = b.connect("one", "")
	user = b.adapter("irc", "text")
	again := a.turn("hello")
	if !again.Repeated || again.TurnID != q.TurnID {
		t.Errorf("handed over as %+v", again)
	}
	a.say("message", again, `,"text":"hi"`)
	user.shows("send", `"hi"`)
	b.wantHistory(row, "in handled hello", "out sent hi")
}

// What is said to an agent that is not there waits for it, in order, and the user
// is told once; one that lost its connection for a moment is not away.
func TestAway(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{Grace: patience})
	b.agent("one")
	row := b.channel("irc", "one")
	user := b.adapter("irc", "text")
	user.asks("one")
	user.shows("send", "not there just now")
	user.asks("two")
	a := b.connect("one", "")
	for _, text := range []string{"one", "two"} {
		q := a.turn(text)
		a.say("message", q, `,"text":"re `+text+`"`)
		user.shows("send", `"re `+text+`"`)
	}
	b.eventually("both are handled", func() bool { return !strings.Contains(strings.Join(b.history(row), "|"), "received") })
	_ = a.ws.Close()
	b.eventually("it is gone", func() bool {
		found, _ := b.roster.Agent("one")
		return !found.(*agent.Desk).Connected()
	})
	user.asks("three") // within the grace: nobody is told anything
	a = b.connect("one", "")
	q := a.turn("three")
	a.say("message", q, `,"text":"re three"`)
	user.shows("send", `"re three"`)
}

// An agent that goes for good in the middle of a turn is away: the turn waits, and
// comes again.
func TestAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{Grace: 50 * time.Millisecond})
	b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	user.asks("four")
	q := a.turn("four")
	_ = a.ws.Close()
	user.shows("send", "not there just now")
	if since, away := b.hub.AgentAway("one"); !away || time.Since(since) > patience {
		t.Errorf("the hub says away %v since %s", away, since)
	}
	a = b.connect("one", "")
	again := a.turn("four")
	if !again.Repeated || again.TurnID != q.TurnID {
		t.Errorf("handed over as %+v", again)
	}
	a.say("message", again, `,"text":"re four"`)
	user.shows("send", `"re four"`)
}

// An agent hands its conversation over to another one.
func TestTransfer(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.agent("two")
	b.channel("irc", "one")
	one, two, user := b.connect("one", ""), b.connect("two", ""), b.adapter("irc", "text")
	user.asks("an invoice")
	q := one.turn("an invoice")
	one.say("transfer", q, `,"agent":"three","text":"I pass you on.","message_id":"t"`)
	one.shows("message_ack", `"ok":false`, `not_supported: agent: `)
	one.say("transfer", q, `,"agent":"two","text":"I pass you on.","reason":"an invoice","message_id":"t"`)
	frames := user.read() + user.read()
	if !strings.Contains(frames, "I pass you on.") {
		t.Errorf("the user reads %s", frames)
	}
	one.shows("message_ack", `"ok":true`)
	user.asks("where is it?")
	q = two.turn("where is it?")
	two.say("message", q, `,"text":"Here."`)
	user.shows("send", "Here.")
}
