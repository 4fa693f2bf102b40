package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"

	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// Statistics is what happened in a channel, or in all of them, in the last hour or
// day.
type Statistics struct {
	Channel string      `json:"channel" doc:"Its name; empty = all channels together"`
	Window  string      `json:"window" enum:"hour,day"`
	Step    int         `json:"step_seconds" doc:"How long each point lasts"`
	From    Time        `json:"from"`
	To      Time        `json:"to" doc:"When the minute ends that is under way, which is counted as far as it is"`
	Total   StatPoint   `json:"total" doc:"All points together; its queue is the longest"`
	Points  []StatPoint `json:"points" doc:"Oldest first, without a gap"`
}

// StatPoint is what happened in a stretch of time.
type StatPoint struct {
	At       Time     `json:"at" doc:"Its beginning"`
	Received int64    `json:"received" doc:"Messages stored, from the far end"`
	Sent     int64    `json:"sent" doc:"Messages stored, to the far end"`
	Failed   int64    `json:"failed" doc:"Messages that failed or expired, in both directions"`
	Refused  int64    `json:"refused" doc:"Messages not stored: over the rate, or the disk took none"`
	Queue    int64    `json:"queue" doc:"The most messages that waited for an adapter at once"`
	P50      *float64 `json:"latency_p50_seconds" doc:"How long messages took to the far end, from the commit; half took no longer. null = none got there"`
	P95      *float64 `json:"latency_p95_seconds" doc:"As latency_p50_seconds, of 19 in 20"`
}

// statWindow is a stretch of time and how it is cut.
type statWindow struct{ length, step time.Duration }

var statWindows = map[string]statWindow{"hour": {time.Hour, time.Minute}, "day": {24 * time.Hour, 10 * time.Minute}}

type statQuery struct {
	Channel string `query:"channel" maxLength:"64" doc:"Id or name; without it, all channels together"`
	Window  string `query:"window" enum:"hour,day" default:"hour" doc:"An hour by minutes, or a day by ten minutes"`
}

func (s *server) statistics() {
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/statistics", "get-statistics", "Messages, failures, queue and delivery latency over the last hour or day", 200, 404, 422)), s.getStatistics)
}

func (s *server) getStatistics(ctx context.Context, in *statQuery) (*body[Statistics], error) {
	out := Statistics{Window: in.Window}
	key := int64(tally.AllChannels)
	switch h := holderOf(ctx); {
	case in.Channel != "":
		row, err := s.find(ctx, in.Channel)
		if err != nil {
			return nil, err
		}
		out.Channel, key = row.Name, row.Key
	case h.Limited():
		return nil, huma.Error403Forbidden("the key " + h.Name + " is limited to channels: name one of them, as what all do together is not for it")
	}
	w := statWindows[in.Window]
	out.Step = int(w.step / time.Second)
	to := s.Now().UTC().Truncate(time.Minute).Add(time.Minute)
	from := to.Add(-w.length)
	out.From, out.To = timeOf(from), timeOf(to)
	rows, err := s.Minutes(ctx, key, from, to)
	if err != nil {
		return nil, s.fault(err, "statistics")
	}
	sums := make([]tally.Minute, w.length/w.step)
	var total tally.Minute
	for i := range rows {
		r := &rows[i]
		p := &sums[r.At.Sub(from)/w.step]
		for _, sum := range []*tally.Minute{p, &total} {
			sum.Add(r)
			sum.Queue = max(sum.Queue, r.Queue)
		}
	}
	out.Points = make([]StatPoint, len(sums))
	for i := range sums {
		out.Points[i] = statPoint(&sums[i], from.Add(time.Duration(i)*w.step))
	}
	out.Total = statPoint(&total, from)
	return &body[Statistics]{out}, nil
}

func statPoint(m *tally.Minute, at time.Time) StatPoint {
	quantile := func(q float64) *float64 {
		v, ok := m.Latency.Quantile(&tally.Delays, q)
		if !ok {
			return nil
		}
		s := time.Duration(v).Seconds()
		return &s
	}
	return StatPoint{
		At: timeOf(at), Received: m.Received, Sent: m.Sent, Failed: m.Failed, Refused: m.Refused, Queue: m.Queue, P50: quantile(0.5), P95: quantile(0.95),
	}
}

// metrics shows Prometheus what the host counts.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	if r, _, ok := s.enter(w, r, auth.ScopeRead, wholeHost); ok {
		s.Metrics.ServeHTTP(w, r)
	}
}

// counted counts the requests that next answers.
func (s *server) counted(next http.Handler) http.Handler {
	if s.Metrics == nil {
		return next
	}
	return s.Metrics.Count(next)
}
