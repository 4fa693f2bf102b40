// Package agui is the AG-UI front end: a channel whose far end is clients that
// POST a run and read its events. It attaches to the hub like an adapter, once
// for all clients; whose message an answer is for, its routing tells. History is
// the delivery: a client that goes away reads there what it missed.
package agui

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Kind is that of the front end's channel, and its name.
const Kind = "agui"

// Bounds, unless Options say otherwise.
const (
	MaxBody = 16 << 20 // bytes of a run's body: HostLimits' inline data in base64, and a history

	DefaultMaxRuns   = 16               // of one key at once
	DefaultRunTime   = 30 * time.Minute // until the client is sent away
	DefaultHeartbeat = 15 * time.Second // of silence
)

// caps is what a client is given: text as it is, all else as an event of its own.
const caps = wire.CapText | wire.CapImage | wire.CapFile | wire.CapTyping | wire.CapParts | wire.CapStream | wire.CapForm |
	wire.CapDeleteMessage | wire.CapReaction

// Options of a front end. Store, Attachments and Hub are needed.
type Options struct {
	Store       Ledger
	Attachments *attach.Store
	Hub         front.Hub
	Pages       *paging.Pages  // nil = one that only this front end reads through
	Bodies      *intake.Bodies // nil = one that only this front end reads through
	Log         *slog.Logger   // nil = none
	MaxRuns     int            // of one key at once; 0 = DefaultMaxRuns
	RunTime     time.Duration  // that a client may wait; 0 = DefaultRunTime
	Heartbeat   time.Duration  // 0 = DefaultHeartbeat
}

// Front is the front end of one host.
type Front struct {
	front.Unqueued
	Options
	heard atomic.Int64 // when the latest run came: Unix milliseconds

	switching sync.Mutex // held while the front end attaches or detaches; guards order
	order     int64

	mu      sync.Mutex // guards what follows
	channel ledger.Channel
	inbox   front.Inbox                // nil = the channel is disabled
	turns   map[string]*turn           // that are under way, by what the hub knows their message by
	ids     map[ledger.MessageID]*turn // those whose message is stored
	open    map[*Run]struct{}          // that are being read
	closed  bool
}

var (
	_ front.End    = (*Front)(nil)
	_ hub.Port     = (*Front)(nil)
	_ hub.Follower = (*Front)(nil)
)

// Open finds the front end's channel, or makes it, and attaches to it unless it
// is disabled. Close must be called.
func Open(ctx context.Context, o Options) (*Front, error) {
	f := &Front{Options: o, turns: map[string]*turn{}, ids: map[ledger.MessageID]*turn{}, open: map[*Run]struct{}{}}
	if f.Pages == nil {
		f.Pages = paging.New(f.Store)
	}
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	if f.Bodies == nil {
		f.Bodies = intake.New(f.Log)
	}
	f.MaxRuns = cmp.Or(f.MaxRuns, DefaultMaxRuns)
	f.RunTime = cmp.Or(f.RunTime, DefaultRunTime)
	f.Heartbeat = cmp.Or(f.Heartbeat, DefaultHeartbeat)
	f.heard.Store(time.Now().UnixMilli())
	row, err := front.Channel(ctx, f.Store, Kind, "echo")
	if err != nil {
		return nil, fmt.Errorf("open channel %s: %w", Kind, err)
	}
	if err := f.Changed(ctx, row); err != nil {
		return nil, fmt.Errorf("open channel %s: %w", Kind, err)
	}
	f.Attachments.KeysUploadTo(row.ID)
	return f, nil
}

// Kind implements front.End.
func (f *Front) Kind() front.Kind {
	return front.Kind{
		Name: Kind, About: "Clients that speak AG-UI, with keys of scope agent:run; there is one channel, which the host makes",
		Fixed: front.Fixed(),
	}
}

// Changed implements front.End: a channel that was disabled has no runs, and is
// attached again once it is enabled.
func (f *Front) Changed(ctx context.Context, row ledger.Channel) error {
	f.switching.Lock()
	defer f.switching.Unlock()
	f.mu.Lock()
	if row.Key == f.channel.Key && row.Version < f.channel.Version {
		f.mu.Unlock()
		return nil // a newer one takes effect already
	}
	f.channel = row
	inbox := f.inbox
	if !row.Enabled {
		f.inbox = nil
	}
	on := row.Enabled && !f.closed
	f.mu.Unlock()
	switch {
	case on && inbox == nil:
		return f.attach(ctx, row)
	case !row.Enabled && inbox != nil:
		inbox.Detach()
		f.cut(errDisabled, func(*Run) bool { return true })
		f.mu.Lock()
		clear(f.turns) // nobody would tell that they are over
		clear(f.ids)
		f.mu.Unlock()
	}
	return nil
}

// attach puts the front end into its channel's slot. switching must be held.
func (f *Front) attach(ctx context.Context, row ledger.Channel) error {
	f.order++
	inbox, err := f.Hub.Attach(ctx, row, f, hub.Info{
		Transport: "http", Platform: Kind, Protocol: wire.V11, Names: caps.Names(), Declared: caps, Since: time.Now(), Order: f.order,
		Heard: func() time.Time { return time.UnixMilli(f.heard.Load()) },
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inbox = inbox
	return nil
}

// Revoked implements front.End: it ends the runs of the key.
func (f *Front) Revoked(key int64) {
	f.cut(errRevoked, func(r *Run) bool { return r.holder.ID == key })
}

// Close ends all runs, and takes no new ones. Their turns are the hub's.
func (f *Front) Close() {
	f.switching.Lock()
	defer f.switching.Unlock()
	f.mu.Lock()
	inbox := f.inbox
	f.inbox, f.closed = nil, true
	f.mu.Unlock()
	f.cut(errStopping, func(*Run) bool { return true })
	if inbox != nil {
		inbox.Detach()
	}
}

// cut ends the runs that match, with an error to their clients.
func (f *Front) cut(why *Failure, match func(*Run) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.open {
		if match(r) {
			r.fail(why)
		}
	}
}

// Failure is why a run ends without success, as its client is told.
type Failure struct{ Code, Message string }

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// The failures that are not a turn's.
var (
	errDisabled = &Failure{"channel_disabled", "the channel was disabled"}
	errRevoked  = &Failure{"key_revoked", "the key was deleted"}
	errStopping = &Failure{"host_stopping", "the host is stopping: what the agent answers will be in the history"}
	errSlow     = &Failure{"too_slow", "the client reads too slowly: what is missing is in the history"}
	errTime     = &Failure{"run_timeout", "the run takes too long: what the agent answers will be in the history"}
	errInternal = &Failure{"internal", "internal error: what was answered is in the history"}
)
