package bench

import (
	"context"
	"fmt"
	"os"
	"time"
)

// way is one of those that a scenario measures in turns.
type way struct {
	name    string
	measure func(ctx context.Context, round int) (Sample, error)
}

// inTurns measures all ways once a round; who begins changes with the round. Of two
// the first has its ratios to the second.
func inTurns(ctx context.Context, s Scenario, rounds int, progress Progress, ways ...way) (ScenarioReport, error) {
	samples := make([][]Sample, len(ways))
	for round := range rounds {
		progress.say(fmt.Sprintf("%s: round %d of %d", s.Name(), round+1, rounds))
		for i := range ways {
			i = (i + round) % len(ways)
			one, err := ways[i].measure(ctx, round)
			if err != nil {
				return ScenarioReport{}, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			samples[i] = append(samples[i], one)
		}
	}
	if len(samples) == 2 {
		for i := range samples[0] {
			samples[0][i].compare(samples[1][i], s.Rate > 0)
		}
	}
	r := ScenarioReport{Scenario: s}
	for i, w := range ways {
		r.Targets = append(r.Targets, summarize(w.name, samples[i]))
	}
	return r, nil
}

// duel is a host and a bare echo beside it, which measurements of their own put load
// on. stop must be called.
type duel struct {
	dir  string
	host *child
	raw  *child
	rest *rest
}

// checkSpan refuses so many rounds of measurements so long.
func checkSpan(rounds int, each time.Duration) error {
	if rounds < 1 || rounds > maxRounds {
		return fmt.Errorf("rounds: found %d, expected 1 to %d", rounds, maxRounds)
	}
	if each < time.Millisecond || each > maxDuration {
		return fmt.Errorf("duration: found %s, expected 1 ms to %s", each, maxDuration)
	}
	return nil
}

// Progress is told what goes on, a line at a time; nil = nobody is.
type Progress func(line string)

func (p Progress) say(line string) {
	if p != nil {
		p(line)
	}
}

// startDuel makes a host on a fresh directory in dir, and the echo.
func startDuel(ctx context.Context, exe, dir string) (d *duel, err error) {
	d = &duel{}
	defer func() {
		if err != nil {
			d.stop()
		}
	}()
	if d.dir, err = os.MkdirTemp(dir, "pontoon-bench-"); err != nil {
		return d, fmt.Errorf("make data directory: %w", err)
	}
	host, err := startHost(ctx, exe, d.dir)
	if err != nil {
		return d, err
	}
	d.host = host
	raw, err := startRaw(ctx)
	if err != nil {
		return d, err
	}
	d.raw = raw
	d.rest, err = host.rest()
	return d, err
}

// bare is the echo as a target.
func (d *duel) bare() target { return target{"raw", d.raw.bridge(), nil, d.raw.pid()} }

// hosted is the host as a target of connections with these tokens.
func (d *duel) hosted(tokens ...string) target {
	return target{"host", d.host.bridge(), tokens, d.host.pid()}
}

func (d *duel) stop() {
	if d.rest != nil {
		d.rest.close()
	}
	if d.raw != nil {
		d.raw.stop()
	}
	if d.host != nil {
		d.host.stop()
	}
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
}
