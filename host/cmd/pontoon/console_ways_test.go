package main

import (
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
)

// TestConsoleReplayRefused: a replay that is refused comes back to where it was asked for,
// with what to do, and what the adapter said stands at the letter.
func TestConsoleReplayRefused(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.dial("?token="+h.channel("red", ""), nil)
	a.send(frame{"type": "register", "platform": "test", "capabilities": []string{"ack", "text"}, "protocol": "1.1"})
	a.next("register_ack")
	h.must(nil, "POST", "/channels/red/messages", `{"conversation_id":"room","text":"not here"}`)
	a.send(frame{"type": "message_ack", "message_id": a.next("send")["message_id"], "ok": false, "error": "chat is <archived>"})
	p := h.console(talk("red", "room"))
	p.Is("the adapter's words in the conversation", "document.querySelector('.unsettled q').innerText === 'chat is <archived>'")
	_ = a.conn.Close()
	p.Is("it has gone", "document.querySelector('#talk-state').innerText.trim() === 'No adapter'")
	p.Go(h.url + "/console/dead?channel=red")
	p.Is("and at the letter", "document.querySelector('.unsettled q').innerText === 'chat is <archived>'")
	p.Press("Replay\n")
	p.Shows("was not replayed. No adapter was attached, and the channel keeps no queue. Attach an adapter")
	p.Is("where it was asked for", "location.pathname + location.search === '/console/dead?channel=red' && document.querySelector('main .problem') !== null")
	p.Accessible("replay-refused")
	p.Press("Story")
	p.Shows("Where it stands")
	p.Press("Replay")
	p.Shows("was not replayed.")
	p.Is("on the story", "location.pathname.startsWith('/console/messages/')")
	var id string
	p.JS(&id, "location.pathname.split('/').at(-1)")
	p.Go(h.url + "/console/dead/" + id + "/replay")
	p.Is("no page leads to the story", "location.pathname === '/console/messages/%s'", id)
	p.Go(h.url + "/console/dead/replay?channel=red")
	p.Press("Replay them all")
	p.Shows("Nothing was replayed")
	p.Is("no bar", "!document.querySelector('progress') && document.querySelector('#replay .badge.bad') !== null")
	p.Accessible("replay-nothing")
	p.Quiet()
}

// TestConsoleSetupLinks: a used link says so before anything is typed, and one for a
// forgotten password says what it is for.
func TestConsoleSetupLinks(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	used := setupLink.FindStringSubmatch(h.out.String())[1]
	h.setUp()
	p := browser.Open(t, used)
	p.Shows("This host is set up already")
	p.Accessible("setup-used")
	p.Press("Log in")
	p.Shows("Password")
	p.Go(strings.TrimSpace(h.cli("operator", "link")))
	p.Shows("New name and password")
	p.Type("name", operatorName)
	p.Type("password", operatorPassword)
	p.Type("again", "another")
	p.Press("Begin")
	p.Shows("differs from the password above")
	p.Shows("New name and password")
	p.Type("password", operatorPassword)
	p.Type("again", operatorPassword)
	p.Press("Begin")
	p.Shows("You are logged in")
	p.Quiet()
}

// TestConsoleAgentProgram: who makes an agent that dials in is shown one, which runs as pasted.
func TestConsoleAgentProgram(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.console("agents/new?kind=websocket")
	p.Type("name", "snake")
	p.Press("Make the agent")
	p.Shows("Shown this once")
	p.Accessible("agent-made")
	paste(t, p, "Python", "agent.py")
	p.Press("Done: to snake")
	p.Is("it is there", "document.querySelector('#agent .badge').innerText.trim() === 'there'")
	h.attach(h.channel("red", `,"agent":"snake"`)).ask("room", "hello there", "Python heard: hello there")
	p.Press("Revoke …")
	p.Shows("The agent is connected now.")
	p.Press("Revoke the key")
	p.Shows("The key is revoked.")
	p.Quiet()
}
