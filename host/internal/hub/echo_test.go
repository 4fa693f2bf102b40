package hub_test

import (
	"slices"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What every adapter sees of the echo's commands, whatever it can show.
const (
	echoCardText    = `"text":"*Every element*\n**Markdown** with a [link](https://example.org/)\n──────────\n[Help] [Say no]\nA list item  →  [Open]\nChoose a colour (options: Red | Blue)\nA note"`
	echoButtonsRows = `"buttons":[[{"text":"Yes","value":"yes","style":"primary"},{"text":"No","value":"no"}],[{"text":"Help","value":"cmd:/help"}]]`
	echoFormText    = `"text":"A form\n1. Your name *\n2. Colour (Red | Blue)\n(Answer with one line each, such as: 1. …)"`
	echoStreamText  = `"text":"echo: one two three four five"`
)

// echoCard has every element in both spellings of its keys.
const echoCard = `"card":{"header":{"title":"Every element","color":"blue"},"elements":[` +
	`{"type":"markdown","Content":"**Markdown** with a [link](https://example.org/)","content":"**Markdown** with a [link](https://example.org/)"},` +
	`{"type":"divider"},` +
	`{"type":"actions",` +
	`"Buttons":[[{"text":"Help","value":"cmd:/help","style":"primary"},{"text":"Say no","value":"no","style":"danger"}]],` +
	`"buttons":[[{"text":"Help","value":"cmd:/help","style":"primary"},{"text":"Say no","value":"no","style":"danger"}]]},` +
	`{"type":"list_item","Text":"A list item","text":"A list item","Button":{"text":"Open","value":"open:1"},"button":{"text":"Open","value":"open:1"}},` +
	`{"type":"select","Placeholder":"Choose a colour","placeholder":"Choose a colour","InitValue":"red","init_value":"red",` +
	`"Options":[{"text":"Red","value":"red"},{"text":"Blue","value":"blue"}],"options":[{"text":"Red","value":"red"},{"text":"Blue","value":"blue"}],` +
	`"CallbackPrefix":"colour:","callback_prefix":"colour:"},` +
	`{"type":"note","Text":"A note","text":"A note"}]}`

// echoCardButtons is the card where only buttons are shown.
const echoCardButtons = echoCardText + `,"buttons":[` +
	`[{"text":"Help","value":"cmd:/help","style":"primary"},{"text":"Say no","value":"no","style":"danger"}],` +
	`[{"text":"Open","value":"open:1"}],` +
	`[{"text":"Red","value":"colour:red"},{"text":"Blue","value":"colour:blue"}]]`

func TestEchoFrames(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	frame := func(kind, rest string) string { return hosttest.Routed(kind, "c", rest) }
	texts := func(list ...string) []string {
		for i := range list {
			list[i] = frame("send", list[i])
		}
		return list
	}
	degraded := map[string][]string{
		"!card":    texts(echoCardText),
		"!buttons": texts(`"text":"Pick one:\n[Yes] [No] [Help]"`),
		"!image":   texts(`"text":"A pontoon bridge\nhttp://pontoon.test/assets/echo.png"`),
		"!file":    texts(`"text":"A small file\nhttp://pontoon.test/assets/echo.txt"`),
		"!update":  texts(`"text":"echo: first version"`, `"text":"echo: second version"`),
		"!typing":  texts(`"text":"echo: that was typing"`),
		"!form":    texts(echoFormText),
		"!stream":  texts(echoStreamText),
		"!caps":    texts(`"text":"caps: text"`),
	}
	with := func(changed map[string][]string) map[string][]string {
		all := map[string][]string{}
		for k, v := range degraded {
			all[k] = v
		}
		for k, v := range changed {
			all[k] = v
		}
		return all
	}
	update := func(handle string) []string {
		return []string{frame("send", `"text":"echo: first version"`), frame("update_message", `"preview_handle":"`+handle+`","text":"echo: second version"`)}
	}
	buttons := []string{frame("send_buttons", `"text":"Pick one:",`+echoButtonsRows)}
	for name, tt := range map[string]struct {
		caps string
		want map[string][]string
	}{
		"text": {"", degraded},
		"all": {hosttest.AllCaps, with(map[string][]string{
			"!card":         {frame("send_card", echoCard)},
			"!buttons":      buttons,
			"!image":        {frame("send_image", `"image":{"url":"http://pontoon.test/assets/echo.png","caption":"A pontoon bridge"}`)},
			"!file":         {frame("send_file", `"file":{"url":"http://pontoon.test/assets/echo.txt","filename":"echo.txt","caption":"A small file"}`)},
			"!update":       update("echo-update"),
			"!update m-1.2": update("m-1.2"),
			"!typing":       {frame("start_typing", ""), frame("send", `"text":"echo: that was typing"`), frame("stop_typing", "")},
			"!caps":         texts(`"text":"caps: text,card,buttons,image,file,typing,update_message,reply_to_message"`),
		})},
		"buttons": {"buttons", with(map[string][]string{
			"!card": {frame("send_buttons", echoCardButtons)}, "!buttons": buttons, "!caps": texts(`"text":"caps: text,buttons"`),
		})},
		"card": {"card", with(map[string][]string{
			"!card": {frame("send_card", echoCard)}, "!caps": texts(`"text":"caps: text,card"`),
		})},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.Attach(t, h.Channel(name), tt.caps)
			for command, want := range tt.want {
				c.Send(hosttest.Say("c", command))
				c.Want(want...)
			}
			c.Send(hosttest.Say("c", "!Caps"), hosttest.Say("c", " !nothing of ours "))
			c.Want(tt.want["!caps"]...)
			c.Want(hosttest.Answer("c", "echo:  !nothing of ours "))
			c.Quiet()
		})
	}
}

// What was shown as something else is noted in history.
func TestDegradationNoted(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("noted")
	c := h.Attach(t, row)
	c.Send(hosttest.Say("c", "!card"))
	c.MustNext()
	out := h.History(row)[1]
	if got := string(out.Notes); got != `[{"from":"card","to":"text","reason":"capability not effective"}]` {
		t.Errorf("notes = %s", got)
	}
}

func TestAllowList(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	for name, tt := range map[string]struct {
		accept   []string
		declared string
		want     string
	}{
		"no list":              {nil, "card file", "text,card,file"},
		"a cut":                {[]string{"buttons", "file"}, "card buttons", "text,buttons"},
		"nothing in common":    {[]string{"file"}, "card buttons", "text"},
		"list of text alone":   {[]string{"text"}, hosttest.AllCaps, "text"},
		"more than declared":   {wire.CapNames(), "typing", "text,typing"},
		"unknown in both":      {[]string{"hologram"}, "card hologram", "text"},
		"unknown declared too": {[]string{"card"}, "card hologram", "text,card"},
	} {
		t.Run(name, func(t *testing.T) {
			row := h.Channel("allow-"+quoteName(name), func(c *ledger.Channel) { c.Accept = tt.accept })
			c := h.Attach(t, row, tt.declared)
			c.Send(hosttest.Say("c", "!caps"))
			c.Want(hosttest.Answer("c", "caps: "+tt.want))
		})
	}
	t.Run("changed while attached", func(t *testing.T) {
		row := h.Channel("changed")
		c := h.Attach(t, row, "card buttons hologram")
		if a, _ := h.Hub.Attached(row.Key); !slices.Equal(a.Declared, []string{"card", "buttons", "hologram"}) {
			t.Errorf("declared %q", a.Declared)
		}
		c.Send(hosttest.Say("c", "!caps"))
		c.Want(hosttest.Answer("c", "caps: text,card,buttons"))
		h.Operator("PATCH", "/channels/changed", `{"accept_capabilities":["buttons"]}`, 200)
		c.Send(hosttest.Say("c", "!caps"), hosttest.Say("c", "!card"))
		c.Want(hosttest.Answer("c", "caps: text,buttons"), hosttest.Routed("send_buttons", "c", echoCardButtons))
		h.Operator("PATCH", "/channels/changed", `{"accept_capabilities":[]}`, 200)
		c.Send(hosttest.Say("c", "!caps"))
		c.Want(hosttest.Answer("c", "caps: text,card,buttons"))
	})
}

func quoteName(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == ' ' {
			b[i] = '-'
		}
	}
	return string(b)
}

// An operator's profile bounds what a 1.0 adapter is sent.
func TestProfile(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("profile", func(c *ledger.Channel) { c.Profile = ledger.Profile{MaxText: 12, MaxButtons: 2} })
	c := h.Attach(t, row, "buttons")
	c.Send(hosttest.Say("c", "one two three"))
	c.Want(hosttest.Answer("c", "echo: one"), hosttest.Answer("c", "two three"))
	c.Send(hosttest.Say("c", "!buttons"))
	c.Want(hosttest.Answer("c", "Pick one:"), hosttest.Answer("c", "[Yes] [No]"), hosttest.Answer("c", "[Help]"))
}
