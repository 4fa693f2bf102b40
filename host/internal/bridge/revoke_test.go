package bridge_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A revoked token ends the connection at once, also of an adapter that does not read:
// nothing that waits for it is written any more, which could take as long as it likes.
// What was not written is not taken for sent.
func TestRevokedGetsNothingMore(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer = true })
	row := h.Channel("revoked-slow", hosttest.WithQueue)
	tokens, err := h.Store.Credentials(t.Context(), ledger.OfChannel(row.Key), 0, 10)
	if err != nil || len(tokens) != 1 {
		t.Fatal(tokens, err)
	}
	c := h.AttachSmall(t, row)
	n := h.Burst(row, 40, 20_000)
	got := []string{c.MustNext()} // these are being written when the others come, and, if who writes is slow, some of those
	const writing = 80
	if n += h.Burst(row, 80, 20_000); n != 120 {
		t.Fatalf("%d messages were taken", n)
	}
	h.Slots.DetachToken(tokens[0].ID, wire.CloseRevoked, "token revoked")
	for {
		frame, err := c.Next()
		if err != nil { // a close frame, if there was room for one
			break
		}
		got = append(got, frame)
	}
	if len(got) > writing {
		t.Errorf("%d messages were written, of which 40 were being written when the token was revoked, or few more", len(got))
	}
	await.Until(t, "what was not written is not sent", func() bool {
		sent := 0
		for _, e := range h.History(row) {
			if e.State == ledger.Sent {
				sent++
			}
		}
		return sent <= writing
	})
}
