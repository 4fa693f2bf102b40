package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
)

// story is the page of one message's life.
type story struct {
	api.Life
	Of      api.Channel
	Next    nextStep
	Replays bool // it may be sent again
}

func (c *console) showStory(w http.ResponseWriter, r *http.Request) error {
	life, err := get[api.Life](c, r, "messages", r.PathValue("id"))
	if err != nil {
		return err
	}
	page := story{Life: life}
	if page.Of, err = get[api.Channel](c, r, "channels", life.ChannelID); err != nil {
		return err
	}
	page.Next, page.Replays = c.nextStep(page.Of, life), replayable(life.Message)
	c.show(w, r, http.StatusOK, view{
		Title: "Message " + life.Message.ID, Nav: navConversations, Above: [2]string{"Conversation", talkPath(life.Channel, life.Message.ConversationID)},
		State: storyState(page), Actions: storyActions(page),
	}, storyContent(page))
	return nil
}

// replayable reports whether the API would send a message again.
func replayable(m api.Message) bool {
	dead := m.State == "failed" || m.State == "expired"
	return dead && (m.Direction == "out" || m.Reason != "rejected")
}

// nextStep says what the message waits for and until when, or what can be done about it.
type nextStep struct {
	Before string // "" = nothing happens, and nothing is to be done
	Until  *api.Time
	After  string
}

func (c *console) nextStep(ch api.Channel, life api.Life) nextStep {
	m := life.Message
	until := api.Time{Time: waitsFrom(life).Add(ttlOf(ch))}
	waits := func(before, after string) nextStep {
		if c.Now().After(until.Time) { // the host looks through its queues every ten seconds
			return nextStep{Before: "It has waited for as long as it may in this channel, and ends within seconds."}
		}
		return nextStep{before, &until, after}
	}
	switch {
	case m.State == "queued" && !ch.Enabled:
		return waits("The channel is disabled, so that no adapter may attach: it waits in the queue until", ". Enable the channel.")
	case m.State == "queued" && !ch.Health.Attached:
		return waits("No adapter is attached: it waits in the queue until one is, and at most until", ". Then it expires.")
	case m.State == "queued" && waitsAfter(life, "refused for now"):
		return waits("The adapter refused it for now. The host tries again after a while, each time later, at most until", ".")
	case m.State == "queued":
		return waits("It waits for what is before it in its conversation, and is written at its turn, at the latest by", ".")
	case m.State == "received" && ch.Health.AgentAway:
		return waits("The channel's agent is away: it waits until the agent is back, and at most until", ". Then it fails.")
	case m.State == "sent":
		return nextStep{Before: sentTo(ch.Adapter)}
	}
	return nextStep{Before: wordsFor(m).Next}
}

// ttlOf is how long a message may wait in a channel.
func ttlOf(ch api.Channel) time.Duration {
	return cmp.Or(time.Duration(ch.QueueLimits.TTLSeconds)*time.Second, delivery.DefaultTTL)
}

// waitsFrom is from when a message's waiting counts: since it was made, or replayed last.
func waitsFrom(life api.Life) time.Time {
	for _, e := range slices.Backward(life.Life) {
		if e.What == "replayed" {
			return e.At.Time
		}
	}
	return life.Message.TS.Time
}

// waitsAfter reports whether this was the last thing that happened before the
// present state.
func waitsAfter(life api.Life, what string) bool {
	for i := len(life.Life) - 1; i >= 0; i-- {
		if w := life.Life[i].What; w != life.Message.State {
			return w == what
		}
	}
	return false
}
