package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// channelPage is how many channels are read at a time.
const channelPage = 500

// scrape is one reading of all counters.
type scrape struct {
	*Metrics
	to     chan<- prometheus.Metric
	errors int
}

func (s *scrape) put(d desc, v float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(d.Desc, d.kind, v, labels...)
}

func (s *scrape) putBool(d desc, on bool, labels ...string) {
	v := 0.0
	if on {
		v = 1
	}
	s.put(d, v, labels...)
}

func (s *scrape) putDelays(d desc, c *tally.Counts, labels ...string) {
	n, sum, buckets := upper(&tally.Delays, c, float64(time.Second))
	s.to <- prometheus.MustNewConstHistogram(d.Desc, n, sum, buckets, labels...)
}

func (s *scrape) failed(what string, err error) {
	s.errors++
	s.Log.Warn("metrics not read", "what", what, "error", err)
}

func (s *scrape) store() {
	st := s.Store.Stats()
	commits, batch := st.Commits.Counts(), st.Batch.Counts()
	s.putDelays(commitTime, &commits)
	n, sum, buckets := upper(&tally.Sizes, &batch, 1)
	s.to <- prometheus.MustNewConstHistogram(commitBatch.Desc, n, sum, buckets)
	s.put(storeRefused, float64(st.Refused.Load()))
	s.putBool(storeFailing, st.Failing.Load())
	z := s.Store.Sizes()
	s.put(databaseSize, float64(z.Database))
	s.put(walSize, float64(z.WAL))
	s.put(attachmentSize, float64(s.Attachments()))
	if z.Space.Total > 0 {
		s.put(diskFree, float64(z.Space.Free))
		s.put(diskReserved, float64(z.Space.Spare))
	}
	busy, most := s.Store.Reading()
	s.put(readersBusy, float64(busy))
	s.put(readersMost, float64(most))
	if s.Backup != nil {
		made := 0.0
		if at, ok := s.Backup(); ok {
			made = float64(at.Unix())
		}
		s.put(lastBackup, made)
	}
}

// channels shows every channel that there is; one that was deleted is not.
func (s *scrape) channels(ctx context.Context) {
	dead, err := s.Store.CountDead(ctx)
	if err != nil {
		s.failed("dead letters", err)
	}
	letters := dead.ByChannel()
	tallies := map[int64]hub.ChannelTally{}
	for _, t := range s.Hub.Tallies() {
		tallies[t.Key] = t
	}
	for after := int64(0); ; {
		rows, err := s.Store.Channels(ctx, after, channelPage)
		if err != nil {
			s.failed("channels", err)
			return
		}
		for _, row := range rows {
			after = row.Key
			s.channel(ctx, row, tallies[row.Key], letters[row.Key])
		}
		if len(rows) < channelPage {
			return
		}
	}
}

func (s *scrape) channel(ctx context.Context, row ledger.Channel, t hub.ChannelTally, letters int64) {
	name := row.Name
	s.put(messages, float64(t.Received), name, ledger.In.String())
	s.put(messages, float64(t.Sent), name, ledger.Out.String())
	for i, o := range hub.Outcomes {
		s.put(outcomes, float64(t.Outcomes[i]), name, o.Direction.String(), o.State.String(), string(o.Reason))
	}
	s.put(refused, float64(t.Refused), name)
	s.put(repeated, float64(t.Repeated), name)
	s.put(limited, float64(t.Limited), name)
	s.put(ignored, float64(t.Ignored), name)
	if t.Latency.Total() > 0 { // most channels of a large host are silent
		s.putDelays(latency, &t.Latency, name)
	}
	s.put(queued, float64(t.Queue), name)
	age := 0.0
	if t.Queue > 0 {
		id, err := s.Store.OldestQueued(ctx, row.Key)
		if err != nil {
			s.failed("queue of "+name, err)
		}
		if id != 0 {
			age = max(0, s.Now().Sub(id.Time()).Seconds())
		}
	}
	s.put(oldest, age, name)
	s.put(flights, float64(t.Flights), name)
	s.put(waiting, float64(t.Waiting), name)
	s.put(dead, float64(letters), name)
	s.putBool(attached, t.Attached, name)
	if t.Platform != "" {
		for _, state := range wire.PlatformStates() {
			s.putBool(platform, t.Platform == state, name, string(state))
		}
	}
	s.putBool(enabled, row.Enabled, name)
}

func (s *scrape) agents() {
	for _, name := range s.Hub.Agents.Names() {
		_, away := s.Hub.AgentAway(name)
		s.putBool(agentAway, away, name)
	}
	for _, a := range s.Hub.AgentTallies() {
		for i, end := range hub.TurnEnds {
			s.put(turns, float64(a.Turns[i]), a.Name, end)
		}
		s.putDelays(turnTime, &a.Took, a.Name)
		if a.First.Total() > 0 {
			s.putDelays(firstToken, &a.First, a.Name)
		}
		s.put(turnsActive, float64(a.Active), a.Name)
	}
}

func (s *scrape) plugins() {
	if s.Plugins == nil {
		return
	}
	for _, p := range s.Plugins.List() {
		for _, state := range plugin.States {
			s.putBool(pluginState, p.State == state, p.Name, string(state))
		}
		s.put(pluginRestarts, float64(p.Restarts), p.Name)
	}
}

// doors shows who comes in, and who may not.
func (s *scrape) doors() {
	s.put(eventStreams, float64(s.Hub.Events.Subscribers()))
	for kind, n := range s.Connections {
		s.put(connections, float64(n()), kind)
	}
	for _, kind := range auth.Kinds {
		s.put(authFailures, float64(s.Failures.Count(kind)), string(kind))
	}
}
