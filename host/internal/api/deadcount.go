package api

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// DeadCount is how many messages of a channel failed or expired for one reason.
type DeadCount struct {
	ChannelID string `json:"channel_id"`
	Channel   string `json:"channel"`
	Reason    string `json:"reason" doc:"Empty where none is known"`
	Count     int64  `json:"count"`
}

// DeadCounts are the dead letters, counted.
type DeadCounts struct {
	Counts   []DeadCount `json:"counts" doc:"By channel, the most frequent reason first"`
	Total    int64       `json:"total"`
	Complete bool        `json:"complete" doc:"All were counted; else there are more, older than the newest 50,000 of the host"`
}

func (s *server) countDead(ctx context.Context, in *struct {
	Channel string `query:"channel" maxLength:"64" doc:"Only of this channel"`
}) (*body[DeadCounts], error) {
	key, err := s.keyOf(ctx, in.Channel)
	if err != nil {
		return nil, err
	}
	sees, err := s.sees(ctx)
	if err != nil {
		return nil, s.fault(err, "dead letters")
	}
	found, err := s.Store.CountDead(ctx)
	if err != nil {
		return nil, s.fault(err, "dead letters")
	}
	out := DeadCounts{Counts: []DeadCount{}, Complete: found.Whole}
	rows := map[int64]ledger.Channel{}
	for of, n := range found.Of {
		if key != 0 && of.Channel != key || !sees(of.Channel) {
			continue
		}
		row, known := rows[of.Channel]
		if !known {
			row, err = s.Store.ChannelByKey(ctx, of.Channel)
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return nil, s.fault(err, "dead letters")
			}
			rows[of.Channel] = row
		}
		if row.ID == "" { // deleted, and about to be swept
			continue
		}
		out.Counts = append(out.Counts, DeadCount{row.ID, row.Name, string(of.Reason), n})
		out.Total += n
	}
	slices.SortFunc(out.Counts, func(a, b DeadCount) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return &body[DeadCounts]{out}, nil
}
