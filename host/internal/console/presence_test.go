package console

import (
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// TestAdapterLeft: who was attached once is not called one that never came, and the page of
// a new channel says that it has left; a restart changes nothing of that.
func TestAdapterLeft(t *testing.T) {
	v := visit(t)
	row := v.Channel("red")
	wizard := func(want string, not ...string) {
		t.Helper()
		v.open("channels/red/attached")
		source := v.source()
		if !strings.Contains(source, want) || !strings.Contains(source, "sse:adapter.detached") {
			t.Errorf("want %q, found %s", want, source)
		}
		for _, wrong := range not {
			if strings.Contains(source, wrong) {
				t.Errorf("%q is in %s", wrong, source)
			}
		}
	}
	v.open("channels")
	if !strings.Contains(v.words(), "No adapter has used it yet.") {
		t.Errorf("of a new channel: %s", v.words())
	}
	wizard("Waiting for the adapter", "has left", "Attached.")
	c := v.Attach(t, row)
	wizard("Attached.", "Waiting for the adapter")
	_ = c.WS.Close()
	await.Until(t, "it goes", func() bool { return !v.Attached(row) })
	wizard("It was attached, and has left.", "Attached.")
	v.open("channels")
	if text := v.words(); strings.Contains(text, "has used it yet") || !strings.Contains(text, "no adapter Messages for it are refused") {
		t.Errorf("of one whose adapter left: %s", text)
	}
	h := v.Again(hosttest.Whole)
	var shown struct {
		Health struct {
			Attached bool
			Last     *string `json:"last_attached_at"`
		}
	}
	h.Must(&shown, "GET", "/channels/red", "")
	if shown.Health.Attached || shown.Health.Last == nil {
		t.Errorf("after a restart: %+v", shown)
	}
}

// TestWaitingForAgents: messages that wait for an agent that is away are counted on every
// page that counts what waits.
func TestWaitingForAgents(t *testing.T) {
	v := visit(t)
	v.Must(nil, "POST", "/agents", `{"name":"clerk","kind":"websocket"}`)
	c := v.Attach(t, v.Channel("red", hosttest.WithAgent("clerk")))
	c.Send(hosttest.Say("room", "one"), hosttest.Say("other", "two"))
	await.Until(t, "both wait", func() bool {
		var shown struct {
			Waiting int `json:"waiting_turns"`
		}
		v.Must(&shown, "GET", "/agents/clerk", "")
		return shown.Waiting == 2
	})
	for path, want := range map[string]string{
		"":             "messages: 0 in queues, 2 for agents",
		"channels":     "clerk can't be asked. 2 messages wait for it.",
		"channels/red": "Waiting for an agent that is away 2 messages",
		"agents":       "2 messages wait for it.",
		"agents/clerk": "Waiting for it 2 messages",
	} {
		v.open(path)
		if text := v.words(); !strings.Contains(text, want) {
			t.Errorf("%q does not say %q:\n%s", path, want, text)
		}
	}
}
