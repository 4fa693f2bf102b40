package api_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// letter is a dead letter as the API lists it.
type letter struct {
	DiedAt  time.Time `json:"died_at"`
	Message struct {
		Text string
		TS   time.Time
	}
}

// deadTexts walks the dead letters in pages of n.
func deadTexts(h *hosttest.Host, n int) (texts []string, died []time.Time) {
	h.T.Helper()
	for cursor := ""; ; {
		page := hosttest.Call[struct {
			Letters []letter `json:"dead_letters"`
			Next    string   `json:"next_cursor"`
		}](h, "GET", fmt.Sprintf("/dead-letters?limit=%d&cursor=%s", n, cursor), "", 200)
		for _, l := range page.Letters {
			texts, died = append(texts, l.Message.Text), append(died, l.DiedAt)
		}
		if cursor = page.Next; cursor == "" {
			return texts, died
		}
	}
}

// TestDeadByDeath: the letter that died last comes first, whenever it was written; each
// page begins where the one before ended.
func TestDeadByDeath(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("c", hosttest.WithAgent("none"))
	a := h.Attach11(t, row, "ack")
	ids := map[string]string{}
	for _, text := range []string{"1", "2", "3", "4", "5"} {
		h.MustSend(row, "room "+text, text)
		ids[text] = a.NextSent("send").MessageID
	}
	order := []string{"3", "1", "5", "4", "2"}
	for i, text := range order {
		a.OK(ids[text], `"error":"no"`)
		await.Until(t, text+" is dead", func() bool {
			texts, died := deadTexts(h, 50)
			return len(texts) == i+1 && time.Since(died[0]) > time.Millisecond // deaths of one moment are ordered otherwise
		})
	}
	slices.Reverse(order)
	for _, n := range []int{1, 2, 50} {
		texts, died := deadTexts(h, n)
		if !slices.Equal(texts, order) {
			t.Errorf("in pages of %d: %v, want %v", n, texts, order)
		}
		if !slices.IsSortedFunc(died, func(a, b time.Time) int { return b.Compare(a) }) {
			t.Errorf("they died at %v", died)
		}
	}
	h.Operator("GET", "/dead-letters?cursor=MTIz", "", 422)
}
