package main

import (
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// TestConsoleStory: what became of a message is told, and what failed is replayed.
func TestConsoleStory(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("red", `,"queue":true`)
	var waiting sentMessage
	h.must(&waiting, "POST", "/channels/red/messages", `{"conversation_id":"room","text":"is anybody there"}`)
	p := h.console("messages/" + waiting.ID)
	p.Shows("No adapter is attached: it waits in the queue until one is")
	p.Accessible("story-queued")
	list := p.Beside(h.url + "/console/conversations")
	list.Shows("Queued")

	a := h.dial("?token="+token, nil)
	a.send(frame{"type": "register", "platform": "test", "capabilities": []string{"ack", "text"}, "protocol": "1.1"})
	a.next("register_ack")
	f := a.next("send")
	a.send(frame{"type": "message_ack", "message_id": f["message_id"], "ok": false, "error": "the room is <closed>"})
	p.Is("its story follows", "document.querySelector('#story-state').innerText.trim() === 'Failed: refused' && document.querySelector('#story').innerText.includes('The adapter refused it, and would refuse it again')")
	p.Is("with what can be done", "document.querySelector('#story-actions button').innerText === 'Replay'")
	list.Is("so does the list", "document.querySelector('.talk .badge').innerText.trim() === 'Failed: refused'")
	list.Quiet()
	p.Go(h.url + "/console/dead")
	eventually(t, "it is dead", func() bool {
		p.Go(h.url + "/console/dead")
		var n int
		p.JS(&n, "document.querySelectorAll('.letters > li').length")
		return n == 1
	})
	p.Shows("Failed: refused")
	p.Is("with the adapter's words", "document.querySelector('.unsettled q').innerText === 'the room is <closed>'")
	p.Accessible("dead")
	p.Go(h.url + "/console/dead?reason=ttl")
	p.Shows("None of this kind")
	p.Go(h.url + "/console/messages/" + waiting.ID)
	p.Shows("the room is <closed>")
	p.Shows("The adapter refused it, and would refuse it again")
	p.Is("the frame that carried it", "document.querySelector('.frame pre').innerText.includes('is anybody there')")
	p.Accessible("story-failed")
	p.Press("Replay")
	p.Shows("Replayed: it is queued")
	if f := a.next("send"); f["text"] != "is anybody there" {
		t.Errorf("the adapter got %v", f)
	}
	a.send(frame{"type": "message_ack", "message_id": f["message_id"], "ok": true})
	eventually(t, "it is delivered", func() bool { return h.history("red")[0].State == "delivered" })
	p.Is("its story follows to the end", "document.querySelector('#story-state').innerText.trim() === 'Delivered' && !document.querySelector('#story-actions button')")
	p.Shows("An operator sent it again")

	// All of a channel, after a question.
	for range 3 {
		h.must(nil, "POST", "/channels/red/messages", `{"conversation_id":"room","text":"again"}`)
		f := a.next("send")
		a.send(frame{"type": "message_ack", "message_id": f["message_id"], "ok": false, "error": "no"})
	}
	eventually(t, "all are dead", func() bool {
		_, text := h.request("GET", "/dead-letters", "")
		return strings.Count(text, `"channel":"red"`) == 3
	})
	p.Go(h.url + "/console/dead?channel=red")
	p.Press("Replay all of red")
	p.Shows("3 messages would be sent again")
	p.Shows("3 × refused")
	p.Accessible("replay-all")
	p.Press("Replay them all")
	p.Shows("3 messages are on the way again")
	p.Is("they have not arrived", "document.querySelector('#replay h2').innerText === '3 messages have not arrived yet'")
	for range 3 {
		a.send(frame{"type": "message_ack", "message_id": a.next("send")["message_id"], "ok": true})
	}
	p.Is("it is over, and asks no more", "document.querySelector('#replay h2').innerText === 'Done' && !document.querySelector('#replay').hasAttribute('hx-get')")
	p.Accessible("replay-done")
	p.Press("Dead letters of red")
	p.Shows("None of this kind")
	p.Go(h.url + "/console/dead/replays/nonsense")
	p.Shows("This replay is not known any more")
	p.Quiet()
}

// sentMessage is what the API says of a message that it took.
type sentMessage struct{ ID, State string }

// TestConsoleFrames: what crosses the wire is seen as it does.
func TestConsoleFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("red", "")
	p := h.console("channels/red/frames")
	p.Shows("Nothing has crossed yet")
	live(p)
	a := h.attach(token)
	p.Is("register is seen", "[...document.querySelectorAll('.frame code')].some(c => c.innerText === 'register')")
	a.ask("room", "hello", "echo: hello")
	p.Is("what is said is seen", "document.querySelector('#frames').innerText.includes('echo: hello')")
	a.send(frame{"type": "nonsense"})
	p.Shows("Refused: unknown_type")
	p.Is("no secret is", "!document.body.innerText.includes(%s)", browser.Quote(token))
	p.Is("in order", "[...document.querySelectorAll('.frame')].every((f, i, all) => i === 0 || Number(f.dataset.id) > Number(all[i-1].dataset.id))")
	p.Accessible("frames")
	p.Quiet()
}

// agentSocket dials in as the agent with this key.
func (h *host) agentSocket(key string) *peer {
	h.t.Helper()
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.url, "http")+agentwire.Path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = resp.Body.Close()
	p := &peer{t: h.t, conn: conn, frames: make(chan frame, 4096)}
	go p.read()
	h.t.Cleanup(func() { _ = conn.Close() })
	p.send(frame{"type": "hello", "key": key})
	p.next("hello_ack")
	return p
}

// TestConsoleStream: an answer is read while it is written.
func TestConsoleStream(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	var made struct{ Key string }
	h.must(&made, "POST", "/agents", `{"name":"slow","kind":"websocket"}`)
	token := h.channel("red", `,"agent":"slow"`)
	a := h.dial("?token="+token, nil)
	a.send(frame{"type": "register", "platform": "test", "capabilities": []string{"text", "stream"}, "protocol": "1.1"})
	a.next("register_ack")
	g := h.agentSocket(made.Key)
	p := h.console(talk("red", "room"))
	live(p)
	a.say("room", "tell me a story")
	turn := g.next("turn")["turn_id"]
	p.Is("the question is there", texts+"[0] === 'tell me a story'")
	g.send(frame{"type": "stream", "turn_id": turn, "text": "Once upon"})
	p.Is("the beginning is read", texts+".at(-1) === 'Once upon'")
	p.Shows("Being written")
	g.send(frame{"type": "stream", "turn_id": turn, "text": "Once upon a time"})
	p.Is("more of it is", texts+".at(-1) === 'Once upon a time'")
	g.send(frame{"type": "stream_end", "turn_id": turn, "text": "Once upon a time, a raft."})
	p.Is("and the end", texts+".at(-1) === 'Once upon a time, a raft.' && !document.body.innerText.includes('Being written')")
	p.Is("it is one message", texts+".length === 2")
	p.Quiet()
}
