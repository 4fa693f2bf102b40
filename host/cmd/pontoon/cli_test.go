package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// holds checks what a command printed for people.
func holds(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(out, p) {
			t.Errorf("found %q, expected %q in it", out, p)
		}
	}
}

func TestCLIChannels(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	own := "my-own-token-0123456789"
	out := h.cli("channel", "create", "lobby", "--token", own, "--accept", "text,buttons", "--allow-users", "alice", "--agent", "none", "--queue")
	holds(t, out, "lobby", own, "shown only now", h.url)

	var made struct {
		channelView
		CreatedAt string `json:"created_at"`
	}
	h.json(&made, "channel", "create", "annex", "--disabled", "--agents", "echo")
	if made.ID == "" || made.Name != "annex" || made.Kind != "bridge" || made.On || len(made.Token) < 30 || made.CreatedAt == "" {
		t.Errorf("created %+v", made)
	}
	h.refused(made.Token)

	var list struct{ Channels []channelView }
	h.json(&list, "channel", "list")
	if len(list.Channels) != 3 || list.Channels[0].Kind != "agui" || list.Channels[1].Name != "lobby" || list.Channels[2].ID != made.ID {
		t.Errorf("list %+v", list)
	}
	holds(t, h.cli("channel", "list"), "lobby", "annex", made.ID)

	var shown channelView
	h.json(&shown, "channel", "show", "lobby")
	if !slices.Equal(shown.Accept, []string{"text", "buttons"}) || !slices.Equal(shown.Users, []string{"alice"}) || shown.Agent != "none" || !shown.Queue || !shown.On || shown.Token != "" {
		t.Errorf("show %+v", shown)
	}
	holds(t, h.cli("channel", "show", made.ID), "annex", "agents", "echo")

	h.json(&shown, "channel", "enable", "annex")
	if !shown.On {
		t.Error("enable: not enabled")
	}
	h.attach(made.Token)
	h.json(&shown, "channel", "disable", made.ID)
	if shown.On {
		t.Error("disable: still enabled")
	}
	h.json(&shown, "channel", "update", "lobby", "--name", "hall", "--agent", "echo", "--accept", "", "--allow-users", "", "--queue=false")
	if shown.Name != "hall" || len(shown.Accept) != 0 || len(shown.Users) != 0 || shown.Agent != "echo" || shown.Queue {
		t.Errorf("update %+v", shown)
	}
	p := h.attach(own, "text", "buttons")
	p.ask("room", "hello", "echo: hello")

	var tested struct {
		ID, State, Detail string
		Confirmed         bool
		Conversation      string `json:"conversation_id"`
	}
	h.json(&tested, "channel", "test", "hall")
	if tested.ID == "" || tested.State != "sent" || tested.Conversation != "room" || tested.Confirmed {
		t.Errorf("test %+v", tested)
	}
	p.next("send")
	holds(t, h.cli("channel", "test", "hall", "--conversation", "other"), "to other", "can't confirm")
	p.next("send")

	if out := h.cli("channel", "delete", "annex"); !strings.Contains(out, "annex") {
		t.Errorf("delete printed %q", out)
	}
	if out := h.cli("channel", "delete", "hall", "--json"); out != "" {
		t.Errorf("delete --json printed %q", out)
	}
	h.json(&list, "channel", "list")
	if len(list.Channels) != 1 || list.Channels[0].Kind != "agui" {
		t.Errorf("list %+v, expected the one that is built in", list)
	}
}

func TestCLITokens(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	first := h.channel("c", "")
	p := h.attach(first)
	var rotated struct{ ID, Token, Hint string }
	h.json(&rotated, "token", "rotate", "c")
	p.ask("room", "still here", "echo: still here")
	holds(t, h.cli("token", "rotate", "c", "--overlap", "1h", "--expires", "100h", "--token", "another-token-of-mine"), "another-token-of-mine", "1h")

	var list struct {
		Tokens []struct {
			ID, Hint string
			Live     bool
			Expires  *string `json:"expires_at"`
			Used     *string `json:"last_used_at"`
		}
	}
	h.json(&list, "token", "list", "c")
	if len(list.Tokens) != 3 || list.Tokens[1].ID != rotated.ID || !strings.HasSuffix(rotated.Token, list.Tokens[1].Hint) || list.Tokens[2].Expires == nil {
		t.Fatalf("tokens %+v", list.Tokens)
	}
	out := h.cli("token", "list", "c")
	holds(t, out, "…mine", "true")
	if strings.Contains(out, first) || strings.Contains(out, rotated.Token) {
		t.Errorf("token list shows a token: %s", out)
	}
	eventually(t, "the use of a token is written down", func() bool {
		h.json(&list, "token", "list", "c")
		return list.Tokens[0].Used != nil
	})

	holds(t, h.cli("token", "revoke", "c", list.Tokens[0].ID), "Revoked", list.Tokens[0].ID)
	p.closed(4003)
	h.refused(first)
	h.attach(rotated.Token)
	if out := h.cli("token", "revoke", "c", rotated.ID, "--json"); out != "" {
		t.Errorf("revoke --json printed %q", out)
	}
	h.refused(rotated.Token)
	p = h.attach("another-token-of-mine")
	h.json(&rotated, "token", "rotate", "c", "--overlap", "0s")
	p.closed(4003)
	h.refused("another-token-of-mine")
	h.attach(rotated.Token)
}

func TestCLISend(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", "")
	p := h.attach(token, "text", "card", "buttons", "image", "file")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	card := write("card.json", `{"header":{"title":"Title"},"elements":[{"type":"markdown","content":"body"},{"type":"actions","buttons":[[{"text":"Go","value":"go"}]]}]}`)
	buttons := write("buttons.json", `[[{"text":"Yes","value":"yes"},{"text":"No","value":"no"}]]`)
	type sent struct {
		ID, State string
		Degraded  []struct{ From, To, Reason string }
	}
	for name, c := range map[string]struct {
		args []string
		kind string
		text string // what the adapter must see of it
	}{
		"text":    {[]string{"hello"}, "send", `"hello"`},
		"dash":    {[]string{"--", "-not a flag"}, "send", `"-not a flag"`},
		"card":    {[]string{"--card", card}, "send_card", "Title"},
		"buttons": {[]string{"Pick:", "--buttons", buttons}, "send_buttons", "Pick:"},
		"image":   {[]string{"--image", "https://example.org/a.png"}, "send_image", "https://example.org/a.png"},
		"file":    {[]string{"--file", "https://example.org/a.pdf"}, "send_file", "https://example.org/a.pdf"},
	} {
		var s sent
		args := append([]string{"--json", "send", "c", "room"}, c.args...)
		r := runCommand(t, h.env(), "", args...)
		if err := json.Unmarshal([]byte(r.out), &s); err != nil || r.code != 0 || r.err != "" || s.ID == "" || s.State != "sent" || len(s.Degraded) != 0 {
			t.Errorf("%s: %+v (%v)", name, r, err)
			continue
		}
		f, err := json.Marshal(p.next(c.kind))
		if err != nil || !bytes.Contains(f, []byte(c.text)) {
			t.Errorf("%s: frame %s, expected %s in it", name, f, c.text)
		}
	}
	if r := runCommand(t, h.env(), `[[{"text":"Piped","value":"p"}]]`, "send", "c", "room", "--buttons", "-"); r.code != 0 {
		t.Errorf("buttons from stdin: %+v", r)
	}
	p.next("send_buttons")

	// What the adapter can't show comes as text, and the command says so.
	p = h.attach(token)
	var s sent
	h.json(&s, "send", "c", "room", "--card", card)
	if len(s.Degraded) == 0 || s.Degraded[0].From != "card" || s.Degraded[0].To != "text" || s.Degraded[0].Reason == "" {
		t.Errorf("degraded %+v", s)
	}
	if f := p.next("send"); !strings.Contains(f["text"].(string), "[Go]") {
		t.Errorf("card as text: %v", f)
	}
	holds(t, h.cli("send", "c", "room", "--image", "https://example.org/a.png"), "sent", "image shown as text")
}

func TestCLIMessagesAndAdapters(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.attach(h.channel("c", ""), "text", "typing", "telepathy")
	p.ask("one", "first", "echo: first")
	p.ask("two", "second", "echo: second")
	var page struct {
		Messages []row
		Next     string `json:"next_cursor"`
	}
	h.json(&page, "messages", "c")
	if len(page.Messages) != 4 || page.Messages[0].Text != "echo: second" || page.Messages[0].ReplyTo != page.Messages[1].ID || page.Messages[3].State != "handled" {
		t.Errorf("messages %+v", page)
	}
	h.json(&page, "messages", "c", "--conversation", "one")
	if len(page.Messages) != 2 || page.Messages[1].Author != "alice" {
		t.Errorf("messages of one %+v", page)
	}
	h.json(&page, "messages", "c", "--limit", "1")
	if len(page.Messages) != 1 || page.Next == "" {
		t.Errorf("one message %+v", page)
	}
	text := lines(h.cli("messages", "c"))
	if len(text) != 4 || !strings.HasSuffix(text[0], "→ one  alice: first  (handled)") || !strings.HasSuffix(text[3], "← two  echo: echo: second  (sent)") {
		t.Errorf("messages, oldest first: %q", text)
	}

	var list struct {
		Adapters []struct {
			Channel, Platform, Protocol string
			Declared, Effective         []string
		}
	}
	h.json(&list, "adapters")
	if len(list.Adapters) != 1 || list.Adapters[0].Channel != "c" || list.Adapters[0].Protocol != "1.0" || !slices.Contains(list.Adapters[0].Declared, "telepathy") ||
		!slices.Equal(list.Adapters[0].Effective, []string{"text", "typing"}) {
		t.Errorf("adapters %+v", list)
	}
	holds(t, h.cli("adapters"), "CHANNEL", "test", "text,typing,telepathy")
	var caps struct{ Capabilities []struct{ Name string } }
	h.json(&caps, "capabilities")
	if len(caps.Capabilities) < 8 {
		t.Errorf("capabilities %+v", caps)
	}
	holds(t, h.cli("capabilities"), "reply_to_message", "update_message")
}

func TestCLIHelp(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "Usage:", "--help": "serve", "serve --help": "--listen", "channel --help": "create", "send --help": "--card", "adapter run --help": "irc",
		"--version": "pontoon", "completion bash": "bash completion", "completion zsh": "zsh completion", "completion fish": "fish completion",
		"__complete chan": "channel\t",
	} {
		r := runCommand(t, nil, "", strings.Fields(args)...)
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("pontoon %s: exit status %d, expected %q in %q (stderr %q)", args, r.code, want, r.out, r.err)
		}
	}
	if r := runCommand(t, nil, "", "adapter", "run", "irc", "--help"); r.code != 0 || !strings.Contains(r.out+r.err, "PONTOON_TOKEN") {
		t.Errorf("adapter run irc --help: %+v", r)
	}
	dir := t.TempDir()
	if r := runCommand(t, nil, "", "man", dir); r.code != 0 {
		t.Errorf("man: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "pontoon-channel-create.1")); err != nil {
		t.Error(err)
	}
}

// The key comes from the flag, the environment or the data directory.
func TestCLIKey(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	url := "PONTOON_URL=" + h.url
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
	}{
		"flag":         {[]string{url, "PONTOON_KEY=pnk_thatisnotthekey"}, []string{"--key", h.key}, 0},
		"environment":  {[]string{url, "PONTOON_KEY=" + h.key}, nil, 0},
		"dataFlag":     {[]string{url}, []string{"--data", h.data}, 0},
		"dataVariable": {[]string{url, "PONTOON_DATA=" + h.data}, nil, 0},
		"errNone":      {[]string{url}, nil, 1},
		"errWrong":     {[]string{url, "PONTOON_DATA=" + h.data, "PONTOON_KEY=pnk_thatisnotthekey"}, nil, 1},
	} {
		r := runCommand(t, c.env, "", append([]string{"channel", "list", "--json"}, c.args...)...)
		if r.code != c.code || strings.Contains(r.err, h.key) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// dirty reports whether text has what could move a terminal's cursor or change
// what is read on it.
func dirty(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) && r != '\u061c' && r != '\u200e' && r != '\u200f')
	})
}

func TestCLICleansWhatUsersWrote(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	evil := "\x1b]0;owned\x07\x1b[2J\x9b31m\u009b31m\r\u202egnp.exe\x7f\nforged line\ttab"
	p := h.dial("", nil)
	p.send(frame{"type": "register", "token": h.channel("c", ""), "platform": "evil" + evil, "capabilities": []string{"text", evil}, "metadata": map[string]string{"x": evil}})
	p.next("register_ack")
	p.send(frame{"type": "message", "conversation_id": "room" + evil, "session_key": evil, "user_id": "u" + evil, "user_name": "name" + evil, "text": "text" + evil})
	p.next("send")
	for args, count := range map[string]int{"messages c": 2, "adapters": 2, "channel list": 3, "channel show c": 25} {
		out := h.cli(strings.Fields(args)...)
		if dirty(out) {
			t.Errorf("%s: control characters reach the terminal: %q", args, out)
		}
		if strings.Count(out, "\n") != count {
			t.Errorf("%s: %d lines, expected %d: %q", args, strings.Count(out, "\n"), count, out)
		}
	}
	// Nobody can name that conversation in a command.
	r := runCommand(t, h.env(), "", "send", "c", "room"+strings.ReplaceAll(evil, "\x9b3", ""), "hi")
	if r.code != 1 || dirty(r.err) {
		t.Errorf("send: %+v", r)
	}
	oneLine(t, r.err, "conversation_id")
}

func TestCLIFollow(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", "")
	other := h.attach(h.channel("other", ""))
	p := h.attach(token)

	human := startProcess(t, h.env(), pontoonBinary, "messages", "c", "--follow")
	room := startProcess(t, h.env(), pontoonBinary, "messages", "c", "--follow", "--conversation", "room", "--json", "--limit", "1")
	sees := func(p *process, texts ...string) {
		t.Helper()
		eventually(t, "the reader sees "+strings.Join(texts, ", "), func() bool {
			out := p.out.String()
			for _, text := range texts {
				if !strings.Contains(out, text) {
					return false
				}
			}
			return true
		})
	}
	p.ask("room", "m1", "echo: m1") // the readers may not be there yet: history has it
	sees(human, ": m1 ", "echo: m1")
	sees(room, `"echo: m1"`)
	other.ask("room", "not here", "echo: not here")
	p.ask("side", "m2\x1b[31m", "echo: m2\x1b[31m")
	sees(human, "echo: m2")

	for i, round := range []string{"m3", "m4"} {
		if i == 0 {
			h.stop()
		} else {
			h.kill()
		}
		h.again()
		p = h.attach(token)
		p.ask("room", round, "echo: "+round) // most likely before the readers are back
		sees(human, "echo: "+round)
		sees(room, `"echo: `+round+`"`)
	}
	human.signal(syscall.SIGINT)
	human.waitExit()
	room.signal(syscall.SIGTERM)
	room.waitExit()

	if dirty(human.out.String()) {
		t.Errorf("control characters reach the terminal: %q", human.out.String())
	}
	var texts []string
	for s := bufio.NewScanner(strings.NewReader(room.out.String())); s.Scan(); {
		var m row
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		texts = append(texts, m.Text)
	}
	// Which of the first pair a --limit 1 shows depends on when it looked.
	got := strings.TrimPrefix(strings.Join(texts, "|"), "m1|")
	if want := "echo: m1|m3|echo: m3|m4|echo: m4"; got != want {
		t.Errorf("followed %s, expected %s", got, want)
	}
	if n := len(lines(human.out.String())); n != 8 {
		t.Errorf("%d lines, expected 8: %s", n, human.out.String())
	}
	if human.errs.String() != "" || room.errs.String() != "" {
		t.Errorf("stderr %q, %q", human.errs.String(), room.errs.String())
	}
}

// --follow shows what comes between its look at history and its stream.
func TestCLIFollowMissesNothing(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.attach(h.channel("c", ""))
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := make(chan struct{})
	defer close(stop)
	first := make(chan struct{})
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case _, ok := <-p.frames:
				if !ok {
					return
				}
			case first <- struct{}{}:
			}
		}
	})
	reader := startProcess(t, h.env(), pontoonBinary, "messages", "c", "--follow", "--json", "--limit", "500")
	const total = 200 // with the answers fewer than the limit: the reader may start late
	await.Value(t, "the adapter reads", first)
	for n := range total {
		p.say("room", "m"+string(rune('0'+n/100))+string(rune('0'+n/10%10))+string(rune('0'+n%10)))
		if n == 0 {
			eventually(t, "the first is stored", func() bool { return len(h.history("c")) == 2 })
		}
	}
	eventually(t, "all are followed", func() bool { return strings.Count(reader.out.String(), "\n") >= 2*total })
	var got []string
	for _, line := range lines(reader.out.String()) {
		var m row
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m.ID)
	}
	var want []string
	for _, m := range h.history("c") {
		want = append(want, m.ID)
	}
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		t.Errorf("followed %d messages, history has %d, or in another order", len(got), len(want))
	}
}
