package main

import (
	"strings"
	"syscall"
	"testing"
)

// Who goes on from the newest message is not shown older ones whose state
// has changed.
func TestFollowShowsNothingOld(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", `,"queue":true`)
	for _, text := range []string{"one", "two", "three"} {
		h.cli("send", "c", "room", text)
	}
	p := h.attach(token) // what waited is sent: the stream has it for who knows the newest one
	for range 3 {
		p.next("send")
	}
	reader := startProcess(t, h.env(), pontoonBinary, "messages", "c", "--follow", "--limit", "1")
	sees := func(text string) {
		t.Helper()
		eventually(t, "the reader sees "+text, func() bool { return strings.Contains(reader.out.String(), text) })
	}
	sees("three")
	p.ask("room", "four", "echo: four")
	sees("echo: four")
	reader.signal(syscall.SIGINT)
	reader.waitExit()
	var texts []string
	for _, line := range lines(reader.out.String()) {
		_, said, _ := strings.Cut(line, ": ")
		said, _, _ = strings.Cut(said, "  (")
		texts = append(texts, said)
	}
	if got, want := strings.Join(texts, "|"), "three|four|echo: four"; got != want {
		t.Errorf("followed %s, expected %s", got, want)
	}
}

// A terminal is shown of what kind a message is, and no url that opens an attachment.
func TestMessagesShowKindsAndNoSignature(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.attach(h.channel("c", ""))
	path := t.TempDir() + "/picture.png"
	writeFile(t, path, "\x89PNG\r\n\x1a\n and more")
	h.cli("send", "c", "room", "look", "--image", path)
	h.cli("send", "c", "room", "--file", path)
	_, raw := h.request("GET", "/channels/c/messages", "")
	_, token, signed := strings.Cut(raw, "?token=")
	if !signed {
		t.Fatalf("found no signed url in %s", raw)
	}
	out := h.cli("messages", "c")
	if !strings.Contains(out, "[vision] look") || !strings.Contains(out, "[file] ") || strings.Contains(out, token[:16]) {
		t.Errorf("shown %s", out)
	}
}

// All that is set of a channel is shown.
func TestChannelShowsLimitsAndProfile(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("c", "")
	if out := h.cli("channel", "show", "c"); !strings.Contains(out, "10000 messages, each for 24h0m0s and 10 attempts") || !strings.Contains(out, "as the adapter says") {
		t.Errorf("without limits: %s", out)
	}
	if status, text := h.request("PATCH", "/channels/c", `{"queue_limits":{"ttl_seconds":60,"length":7,"attempts":3},"profile":{"max_text":99}}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if out := h.cli("channel", "show", "c"); !strings.Contains(out, "7 messages, each for 1m0s and 3 attempts") || !strings.Contains(out, `{"max_text":99}`) {
		t.Errorf("with limits: %s", out)
	}
}

// What a terminal would obey, or not show, is shown as an escape: controls, ends of lines,
// directions and spaces of no width. What scripts and emoji need stays.
func TestTerminalIsShownEscapes(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("c", `,"queue":true`)
	h.cli("send", "c", "room\u202e", "a\u2028b\u200bc\u202ed\x1b[31me\u009bf\u2066g\ufeffh\x7fi\U000e0041j")
	h.cli("send", "c", "room", "👩\u200d👩 مي\u200cخ")
	out := h.cli("messages", "c")
	if want := `a\u2028b\u200bc\u202ed\u001b[31me\u009bf\u2066g\ufeffh\u007fi\U000e0041j`; !strings.Contains(out, want) || !strings.Contains(out, `room\u202e`) {
		t.Errorf("shown %q, expected %s", out, want)
	}
	if !strings.Contains(out, "👩\u200d👩 مي\u200cخ") {
		t.Errorf("joiners are gone: %q", out)
	}
	if i := strings.IndexFunc(strings.ReplaceAll(out, "\n", ""), obeyed); i >= 0 {
		t.Errorf("a character that is not seen at %d of %q", i, out)
	}
}
