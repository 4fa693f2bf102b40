package api

import (
	"context"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

// ChannelSummary is what all channels together are like.
type ChannelSummary struct {
	Channels     int       `json:"channels"`
	Slots        int       `json:"slots" doc:"Enabled ones that an adapter may attach to"`
	Attached     int       `json:"attached" doc:"Of them, those to which one is"`
	Bridges      int       `json:"bridges" doc:"Channels that operators made"`
	BridgesTaken int       `json:"bridges_attached" doc:"Of them, those to which an adapter is attached"`
	Spoken       int       `json:"spoken" doc:"Channels from which something came in"`
	QueueLength  int       `json:"queue_length" doc:"Messages that wait for adapters"`
	WaitingTurns int       `json:"waiting_turns" doc:"Users' messages that wait for agents that are away"`
	Troubled     int       `json:"troubled" doc:"Channels that want somebody"`
	First        []Channel `json:"first" doc:"The channels that want somebody most, and then the oldest others"`
}

// walkAtOnce is how many channels a walk over all of them reads at a time.
const walkAtOnce = 500

// eachChannel calls do for the channels that are there for who makes the request, oldest
// first, from behind the one with key after, until it says that it has enough.
func (s *server) eachChannel(ctx context.Context, after int64, do func(ledger.Channel) (enough bool, err error)) error {
	for {
		rows, err := s.visible(ctx, after, walkAtOnce)
		if err != nil {
			return s.fault(err, "channels")
		}
		for _, r := range rows {
			after = r.Key
			if enough, err := do(r); err != nil || enough {
				return err
			}
		}
		if len(rows) < walkAtOnce {
			return nil
		}
	}
}

// doorsKey is where the context of a walk over many channels has the doors of all.
type doorsKey struct{}

// withDoors reads the doors of all channels at once, for who shows many of them.
func (s *server) withDoors(ctx context.Context) (context.Context, error) {
	all, err := s.Store.Doors(ctx, 0)
	if err != nil {
		return ctx, s.fault(err, "channels")
	}
	return context.WithValue(ctx, doorsKey{}, all), nil
}

// door is what the tokens of a channel say.
func (s *server) door(ctx context.Context, r ledger.Channel) (ledger.Door, error) {
	if all, ok := ctx.Value(doorsKey{}).(map[int64]ledger.Door); ok {
		return all[r.Key], nil
	}
	one, err := s.Store.Doors(ctx, r.Key)
	return one[r.Key], err
}

func (s *server) summarize(ctx context.Context, in *struct {
	Limit int `query:"limit" default:"12" minimum:"1" maximum:"100" doc:"How many channels first has at most"`
}) (*body[ChannelSummary], error) {
	var out ChannelSummary
	var first [len(troubles)][]Channel
	ctx, err := s.withDoors(ctx)
	if err != nil {
		return nil, err
	}
	err = s.eachChannel(ctx, 0, func(r ledger.Channel) (bool, error) {
		c, err := s.show(ctx, r)
		if err != nil {
			return false, err
		}
		trouble := c.Trouble(s.Now())
		out.count(&c, trouble)
		at := &first[slices.Index(troubles[:], trouble)]
		if len(*at) < in.Limit {
			*at = append(*at, c)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	out.First = []Channel{}
	for _, list := range first {
		out.First = append(out.First, list[:min(len(list), in.Limit-len(out.First))]...)
	}
	return &body[ChannelSummary]{out}, nil
}

// count adds a channel.
func (n *ChannelSummary) count(c *Channel, t Trouble) {
	n.Channels++
	n.QueueLength += c.Health.QueueLength
	n.WaitingTurns += c.Health.WaitingTurns
	if c.Health.LastInboundAt != nil {
		n.Spoken++
	}
	if t != NoTrouble {
		n.Troubled++
	}
	if c.Kind == kindBridge {
		n.Bridges++
	}
	if !c.Enabled || c.Kind != kindBridge && c.Kind != plugin.Kind {
		return
	}
	n.Slots++
	if c.Adapter != nil {
		n.Attached++
		if c.Kind == kindBridge {
			n.BridgesTaken++
		}
	}
}
