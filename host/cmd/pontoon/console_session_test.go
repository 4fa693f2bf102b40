package main

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
)

// logIn fills the login page that a tab shows.
func logIn(p *browser.Tab) {
	p.Type("name", operatorName)
	p.Type("password", operatorPassword)
	p.Press("Log in")
}

// TestConsoleLoggedOut: a session that ends elsewhere takes nothing that was typed. The
// page says so, and goes on after a login in another tab.
func TestConsoleLoggedOut(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.attach(h.channel("red", ""))
	a.ask("room", "hello", "echo: hello")
	p := h.console(talk("red", "room"))
	live(p)
	p.Type("text", "do not lose me")
	q := p.Beside(h.url + "/console/channels/new")
	q.Type("name", "typed-name")
	h.must(nil, "DELETE", "/sessions", "")
	p.Is("the page notices by itself", "document.querySelector('#following').dataset.state === 'out' && document.querySelector('#following .out').checkVisibility()")
	p.Shows("You are logged out")
	p.Press("Send")
	p.Shows("Nothing was sent, and what you typed is still here.")
	p.Is("it is", "document.querySelector('textarea').value === 'do not lose me' && location.pathname === '/console/conversations/red'")
	p.Is("the login opens beside it", "document.querySelector('#logged-out a').target === '_blank'")
	p.Accessible("logged-out")
	q.Press("Make the channel")
	q.Shows("Nothing was sent, and what you typed is still here.")
	q.Is("it is", "document.getElementById('name').value === 'typed-name'")

	other := p.Beside(h.url + "/console/login")
	logIn(other)
	other.Shows("Overview")
	live(p)
	p.Press("Send")
	if f := a.next("send"); f["text"] != "do not lose me" {
		t.Errorf("the adapter got %v", f)
	}
	p.Is("it is seen, and nobody is logged out", texts+".at(-1) === 'do not lose me' && !document.querySelector('#logged-out')")
	q.Press("Make the channel")
	q.Shows("typed-name is ready")

	// A page that is asked for says why it is not shown, if no other was told before.
	p.Go("about:blank")
	q.Go("about:blank")
	h.must(nil, "DELETE", "/sessions", "")
	other.Scripts(false)
	other.Go(h.url + "/console/channels")
	other.Shows("You are logged out")
}

// TestConsoleLoggedOutWithoutScripts: what was typed goes through the login, and is sent
// after it when the operator says so. Secrets do not.
func TestConsoleLoggedOutWithoutScripts(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.attach(h.channel("red", ""))
	a.ask("room", "hello", "echo: hello")
	p := h.console("")
	p.Scripts(false)
	p.Go(h.url + "/console/" + talk("red", "room"))
	p.JS(nil, "document.querySelector('textarea').value = 'two\\nlines & <more>'")
	h.must(nil, "DELETE", "/sessions", "")
	p.Press("Send")
	p.Shows("You were logged out, so what you typed was not sent. It is kept below.")
	p.Is("it is read", "document.querySelector('.kept').innerText === 'two\\nlines & <more>'")
	p.Is("it is not in the address", "!document.URL.includes('lines')")
	p.Scripts(true)
	p.Accessible("login-kept")
	p.Scripts(false)
	p.Type("name", operatorName)
	p.Type("password", "wrong, all of it")
	p.Press("Log in")
	p.Shows("Name or password is wrong.")
	logIn(p)
	p.Shows("Not sent yet")
	p.Scripts(true)
	p.Accessible("kept")
	p.Scripts(false)
	p.Press("Send it now")
	if f := a.next("send"); f["text"] != "two\nlines & <more>" {
		t.Errorf("the adapter got %v", f)
	}
	p.Shows("two\nlines & <more>")

	p.Go(h.url + "/console/channels/red")
	p.JS(nil, "document.querySelector('[name=token]').value = 'my-secret-my-secret-my-secret-my-secret'")
	h.must(nil, "DELETE", "/sessions", "")
	p.Press("Rotate the token")
	p.Shows("Secrets and confirmations are not kept.")
	p.Is("it is not there", "!document.documentElement.outerHTML.includes('my-secret')")
	logIn(p)
	p.Shows("To the form, to type it again")
	p.Is("it is not sent without", "!document.body.innerText.includes('Send it now')")
	p.Press("To the form")
	p.Shows("Tokens")

	p.Press("Disable …")
	p.Shows("No adapter may attach until it is enabled again")
	h.must(nil, "DELETE", "/sessions", "")
	p.Press("Disable red")
	p.Shows("You were logged out, so nothing was done.")
	logIn(p)
	p.Is("back where it was", "location.pathname === '/console/channels/red/disable'")
	p.Quiet()
}
