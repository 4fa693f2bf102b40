// Package bridle is the front end for Bridle's browsers: a channel whose far end
// is browsers that come by Socket.IO, or by HTTP. It attaches to the hub like an
// adapter, once for all browsers; whose message an answer is for, its conversation
// tells. History is the delivery: a browser that is not there reads it later.
package bridle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	agents "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Kind is that of the front end's channel, and its name.
const Kind = agents.Kind

// Namespace is where browsers connect.
const Namespace = "/ws/client"

// Bounds, unless Options say otherwise.
const (
	MaxBody = wire.MaxFrame // of a message by HTTP

	DefaultSyncTime  = 120 * time.Second // that a client waits for an answer
	DefaultMaxSyncs  = 256               // calls that wait at once
	maxSyncsOfClient = 8                 // of them, of one client
	maxOfClient      = 32                // connections of one client
)

// caps is what a browser is given: Bridle's own parts as they are, all else as
// their nearest text.
const caps = wire.CapText | wire.CapImage | wire.CapFile | wire.CapTyping | wire.CapParts | wire.CapStream | wire.CapForm

// Options of a front end. Store, Attachments, Hub and Agents are needed.
type Options struct {
	Store       Ledger
	Attachments *attach.Store
	Hub         front.Hub
	Pages       *paging.Pages  // nil = one that only this front end reads through
	Bodies      *intake.Bodies // nil = one that only this front end reads through
	Agents      *agents.Agents
	Secret      string        // that browsers' tokens are signed with; "" = no browser is let in
	SyncTime    time.Duration // 0 = DefaultSyncTime
	MaxSyncs    int           // 0 = DefaultMaxSyncs
	Log         *slog.Logger  // nil = none

	Failures *netguard.Failures // counts wrong tokens; nil = nobody does

	Now   func() time.Time                               // of tokens' ends; nil = time.Now
	After func(time.Duration) (<-chan time.Time, func()) // of SyncTime, and what stops it; nil = a timer
}

// Front is the front end of one host.
type Front struct {
	front.Unqueued
	Options
	heard atomic.Int64  // when the latest message came: Unix milliseconds
	poke  chan struct{} // holds one: an agent has come or gone
	posts posts

	switching sync.Mutex // held while the front end attaches or detaches; guards order
	order     int64

	mu       sync.Mutex // guards what follows
	channel  ledger.Channel
	inbox    front.Inbox                      // nil = the channel is disabled
	browsers map[string]map[*browser]struct{} // by conversation
	asked    map[string]*question             // messages under way, by what the hub knows them by
	ids      map[ledger.MessageID]*question   // those that are stored
	syncs    map[string]int                   // calls that wait, by conversation
	waiting  int                              // their sum
	status   map[string]bool                  // agents' presence as their browsers were told it
	closed   bool
}

var (
	_ front.End          = (*Front)(nil)
	_ hub.Port           = (*Front)(nil)
	_ hub.Follower       = (*Front)(nil)
	_ socketio.Namespace = (*Front)(nil)
)

// Open finds the front end's channel, or makes it if there is a secret, and
// attaches to it unless it is disabled. Close must be called.
func Open(ctx context.Context, o Options) (*Front, error) {
	f := &Front{
		Options: o, poke: make(chan struct{}, 1), browsers: map[string]map[*browser]struct{}{},
		asked: map[string]*question{}, ids: map[ledger.MessageID]*question{}, syncs: map[string]int{}, status: map[string]bool{},
	}
	if f.Pages == nil {
		f.Pages = paging.New(f.Store)
	}
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	if f.Bodies == nil {
		f.Bodies = intake.New(f.Log)
	}
	if f.Now == nil {
		f.Now = time.Now
	}
	if f.After == nil {
		f.After = after
	}
	f.SyncTime, f.MaxSyncs = cmp.Or(f.SyncTime, DefaultSyncTime), cmp.Or(f.MaxSyncs, DefaultMaxSyncs)
	f.heard.Store(time.Now().UnixMilli())
	if n := len(f.Secret); n > 0 && n < minSecret {
		f.Log.Warn("the secret of Bridle's tokens is short: anybody may guess it", "bytes", n, "expected", minSecret)
	}
	row, err := f.Store.ChannelOfKind(ctx, Kind)
	switch {
	case errors.Is(err, ledger.ErrNotFound) && f.Secret == "":
		return f, nil
	case errors.Is(err, ledger.ErrNotFound):
		// Whom a message is for, it says itself: none is who answers in a
		// conversation that nobody began.
		row, err = front.Channel(ctx, f.Store, Kind, hub.AgentNone)
	}
	if err == nil {
		err = f.Changed(ctx, row)
	}
	if err != nil {
		return nil, fmt.Errorf("open channel %s: %w", Kind, err)
	}
	f.Agents.OnChange(f.look)
	return f, nil
}

func after(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Kind implements front.End. Of each conversation its browser says who answers.
func (f *Front) Kind() front.Kind {
	return front.Kind{
		Name: Kind, About: "Browsers that come as Bridle's do; there is one channel, which the host makes",
		Fixed: front.Fixed("agent", "queue_limits"),
	}
}

// Revoked implements front.End: browsers have tokens of another kind than the host's.
func (f *Front) Revoked(int64) {}

// Changed implements front.End: a channel that is disabled lets nobody in, and is
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
	on := row.Enabled && !f.closed
	if !on {
		f.inbox = nil
	}
	f.mu.Unlock()
	switch {
	case on && inbox == nil:
		return f.attach(ctx, row)
	case !on && inbox != nil:
		inbox.Detach()
		f.cut(codeDisabled, "the channel was disabled")
	}
	return nil
}

// attach puts the front end into its channel's slot. switching must be held.
func (f *Front) attach(ctx context.Context, row ledger.Channel) error {
	f.order++
	inbox, err := f.Hub.Attach(ctx, row, f, hub.Info{
		Transport: "socket.io", Platform: Kind, Protocol: wire.V11, Names: caps.Names(), Declared: caps, Since: time.Now(), Order: f.order,
		Heard: func() time.Time { return time.UnixMilli(f.heard.Load()) }, Away: agents.Away,
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inbox = inbox
	return nil
}

// cut ends all browsers' connections and calls that wait, and forgets what is
// under way: nobody would tell that it is over.
func (f *Front) cut(code, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.browsers {
		for b := range all {
			b.fail(code, why)
			b.socket.Close()
		}
	}
	for _, q := range f.asked {
		q.settle(refusal{code, why})
	}
	for _, q := range f.ids {
		q.reply(reply{})
	}
	clear(f.asked)
	clear(f.ids)
}

// Close lets nobody in any more. Browsers' connections are their server's.
func (f *Front) Close() {
	f.Agents.OnChange(nil)
	f.switching.Lock()
	defer f.switching.Unlock()
	f.mu.Lock()
	inbox := f.inbox
	f.inbox, f.closed = nil, true
	f.mu.Unlock()
	if inbox != nil {
		inbox.Detach()
	}
	f.cut(codeStopping, "the host is stopping")
}

// Serve tells browsers when their agent comes or goes, and sends those away whose
// token has ended, until ctx ends.
func (f *Front) Serve(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.poke:
		case <-tick.C:
			f.expire()
		}
		f.tellStatus()
	}
}

// look has Serve look at the agents.
func (f *Front) look() {
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

// present reports whether an agent is known, and whether it can answer now. Of
// most kinds that is not known before they are asked.
func (f *Front) present(name string) (known, connected bool) {
	if _, known = f.Hub.Roster().Agent(name); !known {
		return false, false
	}
	_, away := f.Hub.AgentAway(name)
	return true, !away
}

// mayAsk reports whether the channel lets its users speak to the agent.
func (f *Front) mayAsk(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.channel.Agents) == 0 {
		return true
	}
	for _, a := range f.channel.Agents {
		if a == name {
			return true
		}
	}
	return false
}
