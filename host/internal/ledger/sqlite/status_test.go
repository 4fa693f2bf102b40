package sqlite

import (
	"slices"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
)

// A database of the first schema is brought up to date with all that is in it.
func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	d := older(t, dir, 1)
	if _, err := d.ExecContext(t.Context(), `
		INSERT INTO channel VALUES (7, 'id-a', 'a', 'bridge', 1, 'echo', '[]', 1, '[]', '[]', '{}', 0);
		INSERT INTO conversation (id, channel, key, turns, head, last_in, last_out) VALUES (5, 7, 'c', 1, 200, 100, 200);
		INSERT INTO message VALUES (100, 7, 5, 0, 0, 0, 0, 0, 0, 'hello', NULL, CAST('{"user_id":"u"}' AS BLOB), NULL, NULL, NULL, 'p-1');
		INSERT INTO message VALUES (200, 7, 5, 100, 100, 1, 3, 0, 100, 'echo: hello', NULL, NULL, NULL, NULL, NULL, NULL)`); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	s := open(t, dir)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	chain, err := s.Own(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	c := recalled(t, s, chain, "c")
	if err := commit(s, &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: "new"}}}); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 10)
	if err != nil || !slices.Equal(texts(entries), []string{"new", "echo: hello", "hello"}) {
		t.Fatalf("%v, %v", texts(entries), err)
	}
	for _, e := range entries {
		if e.Status != ledger.StatusCompleted {
			t.Errorf("%q is %s", e.Text, e.Status)
		}
	}
	if e, err := s.ByPlatformID(t.Context(), 7, "p-1"); err != nil || e.ID != 100 || e.Origin.UserID != "u" {
		t.Errorf("by platform id: %+v, %v", e, err)
	}
	if _, err := s.ByPlatformID(t.Context(), 8, "p-1"); err != ledger.ErrNotFound { //nolint:errorlint // as it is
		t.Errorf("of another channel: %v", err)
	}
}

// What is being made when the host dies is an error afterwards, and no answer.
func TestStreamingRow(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	asked := &ledger.Unit{Conversation: c, In: &ledger.Row{State: ledger.Received, Text: "asked"}}
	if err := commit(s, asked); err != nil {
		t.Fatal(err)
	}
	made := make([]ledger.MessageID, 3)
	for i := range made {
		u := &ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Status: ledger.StatusStreaming, ReplyTo: asked.In.ID}}}
		if err := commit(s, u); err != nil {
			t.Fatal(err)
		}
		made[i] = u.Out[0].ID
	}
	for i, status := range []ledger.Status{ledger.StatusCompleted, ledger.StatusError} {
		err := commit(s, &ledger.Unit{Conversation: c, Settle: []ledger.Settlement{{ID: made[i], State: ledger.Sent, Content: &ledger.Content{
			Status: status, Text: "text", Parts: []byte(`[]`), Meta: []byte(`{}`), Offers: true,
		}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, want := range []ledger.Status{ledger.StatusCompleted, ledger.StatusError, ledger.StatusError} {
		e, err := s.Message(t.Context(), made[i])
		if err != nil || e.Status != want || (e.Text == "text") != (i < 2) || (string(e.Parts) == `[]`) != (i < 2) {
			t.Errorf("message %d: %+v, %v, want %s", i, e, err, want)
		}
	}
	open, err := s.Unanswered(t.Context())
	if err != nil || len(open) != 0 {
		t.Errorf("unanswered: %v, %v", open, err)
	}
	r, err := s.Conversation(t.Context(), chain, "c")
	if err != nil || r.Offer == nil || r.Offer.ID != made[1] {
		t.Errorf("offer: %+v, %v", r.Offer, err)
	}
}

// What stands aside begins no turn and does not say where answers go.
func TestAsideRow(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	c := recalled(t, s, chain, "c")
	for _, r := range []ledger.Row{
		{State: ledger.Handled, Text: "aside first", Aside: true, Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: "no"})},
		{State: ledger.Handled, Text: "asked", Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: "yes"})},
		{State: ledger.Handled, Text: "aside", Aside: true, Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: "no"})},
		{State: ledger.Handled, Text: "again", Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: "yes"})},
	} {
		if err := commit(s, &ledger.Unit{Conversation: c, In: &r}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var turns []int64
	for _, e := range slices.Backward(entries) {
		turns = append(turns, e.Turn)
	}
	if !slices.Equal(turns, []int64{0, 0, 0, 1}) {
		t.Errorf("turns %v", turns)
	}
	if r, err := s.Conversation(t.Context(), chain, "c"); err != nil || r.Latest.SessionKey != "yes" {
		t.Errorf("latest %+v, %v", r.Latest, err)
	}
}
