package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// SocketConfig is the config of an agent of kind websocket.
type SocketConfig struct {
	MaxFrames int `json:"max_frames"` // a second; 0 = as many as the host can read in its time, see pace
}

const mostFrames = 1_000_000

// socketFields describe SocketConfig.
var socketFields = []Field{{
	Name: "max_frames", Type: "number",
	About: "Frames a second that it may send; more are answered rate_limited. Without it, as many as can be read in half of one processor's time.",
}}

func readSocket(config json.RawMessage) (SocketConfig, error) {
	var c SocketConfig
	if len(config) == 0 {
		return c, nil
	}
	if err := Decode(config, &c); err != nil {
		return c, err
	}
	if c.MaxFrames < 0 || c.MaxFrames > mostFrames {
		return c, fmt.Errorf("max_frames: found %d, expected 0 to %d", c.MaxFrames, mostFrames)
	}
	return c, nil
}

// What an agent may take of the host's time, unless its operator says a number of
// frames: half of one processor, and a while of all of it before. A frame counts for
// no more than mostCost, whatever its turn makes it wait for.
const (
	freeTime = 250 * time.Millisecond
	mostCost = time.Millisecond
)

// How many frames a second an agent may send that are wrong, and how long nothing is
// read after one beyond that, or beyond max_frames: to read and refuse as fast as it
// sends would cost all others.
const (
	wrongRate    = 200
	limitedPause = 5 * time.Millisecond
)

// Pace keeps one agent from taking the host's time from all others, however many frames
// it sends. One call at a time.
type Pace struct {
	spent time.Duration // of the host's time …
	until time.Time     // … and up to when half of it was given back
}

// pace is what an agent that dials in may send. One goroutine uses it.
type pace struct {
	most  int
	all   *rate.Limiter // nil = by time
	time  Pace
	wrong *rate.Limiter
}

func newPace(most int) *pace {
	p := &pace{most: most, wrong: rate.NewLimiter(wrongRate, wrongRate)}
	if most > 0 {
		p.all = rate.NewLimiter(rate.Limit(most), most)
	}
	return p
}

// refuses says what an agent is told of a frame beyond its rate; nil = it is not. f is
// nil if it could not be read. An acknowledgement is what the host asked for.
func (p *pace) refuses(f *agentwire.FromAgent) *wire.Error {
	if p.all == nil || f != nil && f.Type == agentwire.TypeMessageAck || p.all.Allow() {
		return nil
	}
	time.Sleep(limitedPause)
	werr := wire.Refuse(wire.CodeRateLimited, "more than %d frames a second: this one was not taken, send it again later", p.most)
	if f != nil {
		werr.Ref = f.MessageID
	}
	return werr
}

// refused slows an agent down that sends what is wrong again and again.
func (p *pace) refused() {
	if !p.wrong.Allow() {
		time.Sleep(limitedPause)
	}
}

// took counts what a frame took, unless the agent has a number of frames.
func (p *pace) took(since time.Time) {
	if p.all == nil {
		p.time.Took(since)
	}
}

// Took counts what a frame took, from when it had come, and waits if that was more than
// the agent's part.
func (p *Pace) Took(since time.Time) {
	now := time.Now()
	if p.until.IsZero() {
		p.until = since
	}
	p.spent = max(0, p.spent-now.Sub(p.until)/2) + min(now.Sub(since), mostCost)
	p.until = now
	if over := p.spent - freeTime; over > 0 {
		time.Sleep(2 * over)
	}
}
