package agent_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

func TestHello(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{HelloTimeout: patience})
	b.agent("one")
	b.agent("two")
	b.channel("irc", "one") // its token is no agent's key
	for name, c := range map[string]struct{ header, first, want string }{
		"header":     {"one", `{"type":"hello"}`, `"ok":true`},
		"frame":      {"", `{"type":"hello","key":"` + secret + `one","protocol":"9.9"}`, `"ok":true,"protocol":"1.0","agent":"one","limits":{"max_frame_bytes":262144,"ping_interval_ms":54000,"window":64}}`},
		"headerWins": {"one", `{"type":"hello","key":"wrong"}`, `"agent":"one"`},
		"named":      {"one", `{"type":"hello","agent":"one"}`, `"ok":true`},
		"errNoKey":   {"", `{"type":"hello"}`, `{"type":"hello_ack","ok":false,"error":"missing key"}`},
		"errKey":     {"nobody", `{"type":"hello"}`, `"ok":false,"error":"invalid key"`},
		"errToken":   {"irc", `{"type":"hello"}`, `"error":"invalid key"`},
		"errOther":   {"one", `{"type":"hello","agent":"two"}`, `"error":"invalid key"`},
		"errFirst":   {"one", `{"type":"message","turn_id":"t","text":"a"}`, `"error":"first frame must be type=hello"`},
		"errJSON":    {"one", `hello`, `"error":"first frame must be type=hello"`},
	} {
		header := http.Header{}
		if c.header != "" {
			header.Set("Authorization", "bearer  "+secret+c.header)
		}
		p := b.dial(agentwire.Path, header)
		p.write(c.first)
		p.shows("hello_ack", c.want)
		if strings.HasPrefix(name, "err") {
			p.wantClose(1008)
		}
		_ = p.ws.Close()
	}
	b = newBed(t, agent.SocketOptions{HelloTimeout: 50 * time.Millisecond})
	b.dial(agentwire.Path, nil).wantClose(1008) // says nothing
}

// A plain message with the turn's id is the whole answer.
func TestAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	events, end := b.hub.Events.Subscribe()
	defer end()
	a, user := b.connect("one", ""), b.adapter("irc", "text typing")
	user.asks("hello")
	q := a.turn("hello")
	if q.Channel != "irc" || q.ConversationID != "c" || q.UserID != "alice" || q.UserName != "Alice" || q.Repeated || q.TurnID != q.Message.ID ||
		q.Message.Role != message.RoleUser || q.Message.TurnIndex != 0 || q.Message.SessionID == "" || q.HistoryCursor == "" || strings.Join(q.Capabilities, " ") != "text typing" {
		t.Errorf("the turn is %+v", q)
	}
	if id, ok := ledger.ParseCursor(q.HistoryCursor); !ok || ledger.MessageID(id).String() != q.TurnID {
		t.Errorf("history_cursor %q", q.HistoryCursor)
	}
	a.say("typing", q, "")
	user.shows("start_typing", `"reply_ctx":{"to":"hello"}`)
	a.say("message", q, `,"text":"hi Alice","message_id":"a-1"`)
	user.shows("send", `"text":"hi Alice"`, `"reply_ctx":{"to":"hello"}`)
	a.shows("message_ack", `"message_id":"a-1","ok":true,"id":"`)
	user.shows("stop_typing")
	b.wantHistory(row, "in handled hello", "out sent hi Alice")

	// Its turn is over: nothing more belongs to it, and turn_end is only late.
	a.say("turn_end", q, "")
	a.say("stream", q, `,"text":"a"`)
	a.say("message", q, `,"text":"more","message_id":"a-2"`)
	a.shows("message_ack", `"a-2"`, `"ok":false`, `not_supported: turn_id`)
	a.say("message", q, `,"text":"more"`)
	a.shows("error", `not_supported`)
	a.write(`{"type":"message","turn_id":"nothing","text":"x"}`)
	a.shows("error", `not_supported`, `nothing`)
	a.write(`{"type":"message"}`)
	a.shows("error", `missing_field`, `turn_id`)
	a.write(`{"type":"hello"}`)
	a.shows("error", `already_registered`)
	a.write(`{"type":"ping"}`)
	a.shows("pong")

	// More than one message, and an end without any.
	user.asks("two")
	q = a.turn("two")
	a.say("message", q, `,"text":"first","more":true`)
	user.shows("send", `first`)
	a.say("message", q, `,"text":"second","more":true`)
	user.shows("send", `second`)
	a.say("turn_end", q, "")
	user.asks("nothing")
	q = a.turn("nothing")
	a.say("turn_end", q, "")
	user.asks("fail")
	q = a.turn("fail")
	a.say("turn_end", q, `,"error":"no forecast"`)
	user.shows("send", "Sorry, no answer could be made")
	b.wantHistory(row, "in handled hello", "out sent hi Alice", "in handled two", "out sent first", "out sent second", "in handled nothing",
		"in failed/agent_failed fail", "out sent Sorry, no answer could be made. Please try again.")
	id, err := ledger.ParseMessageID(q.TurnID)
	if err != nil {
		t.Fatal(err)
	}
	life, err := b.store.Life(t.Context(), id)
	if err != nil || len(life) != 2 || life[0].What != "agent failed" || life[0].Detail != "the agent says: no forecast" || life[1].What != "failed" {
		t.Errorf("the operator is told %+v, %v", life, err)
	}
	// Whoever follows sees each question end.
	var ends []string
	for len(ends) < 4 {
		if e := await.Value(t, "a turn ends", events); e.Type == hub.EventState {
			ends = append(ends, e.State.String())
		}
	}
	if !slices.Equal(ends, []string{"handled", "handled", "handled", "failed"}) {
		t.Errorf("the turns end as %q", ends)
	}
}

// What comes behind a turn's last message is told that the turn is over, and a repeat
// is acknowledged, also while that message is on its way to the disk.
func TestBehindTheLastMessage(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	for range 3 {
		user.asks("go")
		q := a.turn("go")
		unlock := hosttest.LockStore(t, b.dir) // commits wait
		a.say("message", q, `,"message_id":"`+q.TurnID+`","text":"last"`)
		a.say("message", q, `,"message_id":"`+q.TurnID+`","text":"last"`)
		a.say("message", q, `,"text":"late"`)
		a.shows("error", `"not_supported"`, "no open turn")
		unlock()
		for range 2 {
			a.shows("message_ack", q.TurnID, `"ok":true`)
		}
		user.shows("send", "last")
	}
}

// Every kind of content, degraded for the far end as anybody's.
func TestContent(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text card buttons parts update_message ack")
	took := func(kind string, handle string, texts ...string) {
		t.Helper()
		f := user.shows(kind, texts...)
		user.write(`{"type":"message_ack","message_id":` + string(f["message_id"]) + `,"ok":true,"preview_handle":"` + handle + `"}`)
	}
	user.asks("go")
	q := a.turn("go")
	a.say("card", q, `,"more":true,"card":{"header":{"title":"T"},"elements":[{"type":"note","text":"n"}]}`)
	took("send_parts", "", `"payloadType":"bridge.card"`, `"title":"T"`)
	a.say("buttons", q, `,"more":true,"text":"Which?","buttons":[[{"text":"A","value":"a"}]]`)
	took("send_parts", "", `"payloadType":"bridge.buttons"`, `Which?`)
	a.say("message", q, `,"more":true,"parts":[{"type":"markdown","markdown":"**b**"}],"metadata":{"stage":"execution"}`)
	took("send_parts", "", `"markdown":"**b**"`)
	a.say("message", q, `,"more":true,"message_id":"m","text":"One"`)
	took("send_parts", "h-1", `"One"`)
	a.shows("message_ack", `"m"`, `"ok":true`)
	b.eventually("the handle is known", func() bool {
		row, _ := b.store.Channel(t.Context(), "irc")
		h := b.history(row)
		return h[len(h)-1] == "out delivered One"
	})
	a.say("update", q, `,"text":"Two","update":{"message_id":"m"}`)
	took("update_message", "", `"preview_handle":"h-1"`, `"text":"Two"`)
	a.say("update", q, `,"text":"Three","update":{"preview_handle":"h-2"}`)
	took("update_message", "", `"preview_handle":"h-2"`)
	for frame, want := range map[string]string{
		`"text":"x","update":{"message_id":"never"}`:                           `not_supported: update.message_id`,
		`"text":"x","update":{"message_id":"` + q.TurnID + `"}`:                `not_supported: update.message_id`,
		`"parts":[{"type":"file","fileName":"a","path":"/etc/passwd"}]`:        `wrong_type: parts[0].path`,
		`"text":"x","metadata":{"edits":"1"}`:                                  `wrong_type: metadata.edits`,
		`"parts":[{"type":"vision","kind":"sideways","mimeType":"image/png"}]`: `wrong_type: `,
	} {
		kind := "message"
		if strings.Contains(frame, "update") {
			kind = "update"
		}
		a.say(kind, q, `,"message_id":"bad",`+frame)
		a.shows("message_ack", `"bad"`, `"ok":false`, want)
	}
	for _, key := range message.HostKeys() {
		a.say("message", q, `,"message_id":"bad","text":"x","metadata":{"own":1,"`+key+`":"1"}`)
		a.shows("message_ack", `"bad"`, `"ok":false`, `wrong_type: metadata.`+key+`: found a key that only the host sets`)
	}
	a.say("message", q, `,"message_id":"bad","text":"mended"`) // the id of a frame that was refused is free
	took("send_parts", "", "mended")
	a.shows("message_ack", `"bad"`, `"ok":true`)
}

func TestUnasked(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.agent("two")
	row := b.channel("irc", "one")
	other := b.channel("other", "two")
	a, user := b.connect("one", ""), b.adapter("irc", "text typing")
	b.adapter("other", "text")
	user.asks("hello")
	q := a.turn("hello")
	a.say("turn_end", q, "")
	a.write(`{"type":"message","channel":"irc","conversation_id":"c","message_id":"a","text":"rain is coming"}`)
	user.shows("send", "rain is coming", `"reply_ctx":{"to":"hello"}`)
	a.shows("message_ack", `"a"`, `"ok":true`)
	user.asks("thanks")
	a.turn("thanks")
	a.write(`{"type":"message","channel":"` + row.ID + `","conversation_id":"c","reply_to":"` + q.TurnID + `","text":"as I said"}`)
	user.shows("send", "as I said", `"reply_ctx":{"to":"hello"}`)
	a.write(`{"type":"typing","channel":"irc","conversation_id":"c"}`)
	user.shows("start_typing")
	a.write(`{"type":"typing","channel":"irc","conversation_id":"c","on":false}`)
	user.shows("stop_typing")
	for frame, want := range map[string]string{
		`"type":"message","channel":"other","conversation_id":"c","text":"x"`:                             `not_supported: channel`,
		`"type":"message","channel":"never","conversation_id":"c","text":"x"`:                             `not_supported: channel`,
		`"type":"transfer","agent":"two","channel":"irc","conversation_id":"c"`:                           `not_supported: turn_id`,
		`"type":"message","channel":"irc","conversation_id":"c","reply_to":"x","text":"x"`:                `wrong_type: reply_to`,
		`"type":"message","channel":"irc","conversation_id":"d","reply_to":"` + q.TurnID + `","text":"x"`: `the message can't be sent: reply_to`,
	} {
		if a.write(`{"message_id":"bad",` + frame + `}`); strings.Contains(frame, "transfer") {
			a.shows("message_ack", `"ok":false`, `turn_id`)
			continue
		}
		a.shows("message_ack", `"bad"`, `"ok":false`, want)
	}
	a.write(`{"type":"stream","channel":"irc","conversation_id":"c","text":"x"}`)
	a.shows("error", "not_supported", "turn_id")
	if h := b.history(other); len(h) != 0 {
		t.Errorf("the other agent's channel has %q", h)
	}
}

// A frame's id makes it count once, also over another connection.
func TestRepeatedFrame(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	user.asks("hello")
	q := a.turn("hello")
	a.say("message", q, `,"text":"hi","message_id":"a"`)
	first := a.shows("message_ack", `"ok":true`)
	a.say("message", q, `,"text":"hi","message_id":"a"`)
	if again := a.shows("message_ack", `"ok":true`); string(again["id"]) != string(first["id"]) {
		t.Errorf("acknowledged as %s, then as %s", first["id"], again["id"])
	}
	_ = a.ws.Close()
	a = b.connect("one", "")
	a.say("message", q, `,"text":"hi","message_id":"a"`)
	if again := a.shows("message_ack", `"ok":true`); string(again["id"]) != string(first["id"]) {
		t.Errorf("acknowledged as %s, then as %s", first["id"], again["id"])
	}
	b.wantHistory(row, "in handled hello", "out sent hi")
}

// What an agent had not ended its next connection gets again, and nobody is
// answered twice.
func TestReconnect(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	user.asks("hello")
	q := a.turn("hello")
	_ = a.ws.Close()
	a = b.connect("one", "")
	again := a.turn("hello")
	if !again.Repeated || again.TurnID != q.TurnID {
		t.Errorf("handed over as %+v", again)
	}
	// A newer connection takes it over, and the older one's frames don't count.
	next := b.connect("one", `,"resume":"`+q.TurnID+`"`)
	a.wantClose(4001)
	if again = next.turn("hello"); !again.Repeated { // it was not acknowledged
		t.Errorf("handed over as %+v", again)
	}
	next.write(`{"type":"message_ack","turn_id":"` + q.TurnID + `"}`)
	next.write(`{"type":"ping"}`)
	next.shows("pong")
	_ = next.ws.Close()
	// It has this one: it says so, and goes on.
	p := b.dial(agentwire.Path, http.Header{"Authorization": {"Bearer " + secret + "one"}})
	p.write(`{"type":"hello","resume":"` + q.TurnID + `"}`)
	p.shows("hello_ack", `"ok":true`, `"resume":{}`)
	p.say("message", q, `,"text":"hi"`)
	user.shows("send", `"hi"`)
	b.wantHistory(row, "in handled hello", "out sent hi")
	// It starts anew with nothing, or comes back after a turn that it can't know.
	_ = p.ws.Close()
	for resume, want := range map[string]string{"x": `"gap":"the turn_id is none`, "0000000000001": `"gap":"the turn is not remembered`} {
		p := b.dial(agentwire.Path, http.Header{"Authorization": {"Bearer " + secret + "one"}})
		p.write(`{"type":"hello","resume":"` + resume + `"}`)
		p.shows("hello_ack", want)
		_ = p.ws.Close()
	}
}

// An agent that does not come back in time is away; one that was in the middle of
// its answer leaves an error that the user sees.
func TestLost(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{Grace: 50 * time.Millisecond})
	b.agent("one")
	b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text stream")
	user.asks("tell me")
	q := a.turn("tell me")
	a.say("stream", q, `,"text":"Once upon"`)
	user.shows("stream", `"Once upon"`)
	_ = a.ws.Close()
	end := user.shows("stream_end", `"Once upon"`)
	user.shows("send", "Sorry, no answer could be made")
	id, err := ledger.ParseMessageID(strings.Trim(string(end["message_id"]), `"`))
	if err != nil {
		t.Fatal(err)
	}
	if e, err := b.store.Message(t.Context(), id); err != nil || e.Status != ledger.StatusError {
		t.Errorf("kept as %+v, %v", e.Row, err)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text stream")
	user.asks("tell me")
	q := a.turn("tell me")
	a.say("stream", q, `,"text":"Once"`)
	user.shows("stream", `"text":"Once"`)
	a.say("stream", q, `,"parts":[{"type":"text","text":"Once upon a time"}]`)
	user.shows("stream", `"text":"Once upon a time"`)
	a.say("stream_end", q, `,"text":"Once upon a time.","message_id":"a"`)
	user.shows("stream_end", `"text":"Once upon a time."`)
	a.shows("message_ack", `"a"`, `"ok":true`)
	b.wantHistory(row, "in handled tell me", "out sent Once upon a time.")
}

// A turn of another agent is as little known as one that there never was, whether it is
// open or not: nobody tries again for ever, or learns which ids are open.
func TestTurnOfAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.agent("two")
	row := b.channel("irc", "one")
	one, two, user := b.connect("one", ""), b.connect("two", ""), b.adapter("irc", "text")
	user.asks("hello")
	q := one.turn("hello")
	user.asks("behind it")
	waits := func() string {
		entries, err := b.store.Before(t.Context(), ledger.Scope{Channel: row.Key}, 0, 1)
		if err != nil || len(entries) == 0 {
			t.Fatal(err)
		}
		return entries[0].ID.String()
	}
	b.eventually("the second one is stored", func() bool { return waits() != q.TurnID })
	refused := func(id string) string {
		two.write(`{"type":"message","turn_id":"` + id + `","text":"mine","message_id":"m"}`)
		return strings.ReplaceAll(two.read(), id, "ID")
	}
	want := refused("0000000000001")
	if !strings.Contains(want, `"ok":false`) || !strings.Contains(want, "not_supported") || strings.Contains(want, "retryable") {
		t.Errorf("an unknown turn is answered %s", want)
	}
	for what, id := range map[string]string{"runs": q.TurnID, "waits": waits()} {
		if got := refused(id); got != want {
			t.Errorf("another agent's turn that %s is answered %s, want %s", what, got, want)
		}
	}
	// Nor does it learn it when the channel is its own by now, and the turn is not.
	row.Agent = "two"
	b.reroute(row)
	if got := refused(q.TurnID); got != want {
		t.Errorf("a turn that the one before it has is answered %s, want %s", got, want)
	}
	one.say("message", q, `,"text":"hi"`)
	user.shows("send", `"hi"`)
	q = two.turn("behind it")
	two.say("message", q, `,"text":"hi again"`)
	user.shows("send", `"hi again"`)
}

// The user stops a turn: its agent is told, and what it says then is refused.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	a, user := b.connect("one", ""), b.adapter("irc", "text")
	user.asks("hello")
	q := a.turn("hello")
	user.asks("/stop")
	user.shows("send", "Stopped.")
	a.shows("cancel", `"turn_id":"`+q.TurnID+`","reason":"stopped"`)
	a.say("message", q, `,"text":"hi","message_id":"a"`)
	a.shows("message_ack", `"ok":false`)
	b.wantHistory(row, "in handled hello", "in handled /stop", "out sent Stopped.")
}
