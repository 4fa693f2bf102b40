package packed

import (
	"slices"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The domain has the message model's words and the protocol's fields as its own, so
// that one converts to the other: they must stay the same.
func TestSameWords(t *testing.T) {
	here := []ledger.Status{ledger.StatusPending, ledger.StatusStreaming, ledger.StatusCompleted, ledger.StatusError}
	there := []message.Status{message.StatusPending, message.StatusStreaming, message.StatusCompleted, message.StatusError}
	if !slices.EqualFunc(here, there, func(a ledger.Status, b message.Status) bool { return string(a) == string(b) }) {
		t.Errorf("the ledger says %q, the message model %q", here, there)
	}
	p := ledger.Profile{MaxText: 1, Markdown: "full", MaxButtons: 2, EditIntervalMS: 3, Parallel: 4, InFlight: 5}
	if got := wire.Profile(p); got != (wire.Profile{MaxText: 1, Markdown: "full", MaxButtons: 2, EditIntervalMS: 3, Parallel: 4, InFlight: 5}) {
		t.Errorf("%+v is %+v as a frame's", p, got)
	}
}

func TestMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		e      ledger.Entry
		own    bool // it has its own id among them
		handle string
	}{
		"byMetadata":   {e: ledger.Entry{Row: ledger.Row{Meta: []byte(`{"preview_handle":"h"}`), PlatformID: "p"}}, handle: "h"},
		"byAdapter":    {e: ledger.Entry{Row: ledger.Row{Meta: []byte(`{"preview_handle":"h"}`), Handle: "a"}}, handle: "a"},
		"byPlatformID": {e: ledger.Entry{Row: ledger.Row{PlatformID: "p"}}, handle: "p"},
		"broken":       {e: ledger.Entry{Row: ledger.Row{Meta: []byte(`{`), PlatformID: "p"}}, handle: "p"},
		"answerOfRun":  {e: ledger.Entry{Row: ledger.Row{ID: 7, Direction: ledger.Out, Meta: []byte(`{"run_id":"r"}`)}}, own: true},
		"question":     {e: ledger.Entry{Row: ledger.Row{ID: 7, Meta: []byte(`{"run_id":"r"}`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := EditHandle(&c.e); got != c.handle {
				t.Errorf("edited as %q, want %q", got, c.handle)
			}
			if got := Metadata(&c.e).String(message.MetaMessageID); (got == c.e.ID.String()) != c.own {
				t.Errorf("own id %q, expected one: %v", got, c.own)
			}
		})
	}
}
