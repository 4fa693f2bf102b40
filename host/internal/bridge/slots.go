// Package bridge speaks the Bridge Protocol with adapters: register, the read
// loop and the flush of one session each, over any transport.
package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Gate checks tokens.
type Gate interface {
	// Admit returns the grant of a token; an error of auth.ErrInvalid's kind if
	// it opens nothing.
	Admit(ctx context.Context, token string) (auth.Grant, error)
}

// Limits of one session.
const (
	Window      = 64              // received frames that are not committed yet
	MaxParcels  = 1024            // durable messages that wait to be written
	MaxOutBytes = 8 << 20         // their frames' content, roughly
	slowAfter   = time.Second     // that more may wait, …
	hardParcels = 4096            // … but no more than this: what one commit may hold, …
	hardBytes   = 2 * MaxOutBytes // … and this: two of them
	maxLossy    = 64              // waiting parcels beyond which lossy ones are dropped

	DefaultMaxSessions = 16_384

	maxLargeRegisters = 64 // register frames above transport.ShortFrame that are read at once without a token

	limitedPause = 5 * time.Millisecond // without reading, after a frame over the rate

	ignoredPause = time.Minute // between two log lines of a session about acknowledgements that it ignores

	platformLines = 20               // log lines of a session about its platform, …
	platformPause = 10 * time.Second // … and then one in this time

	uploadRate  = 5 // uploads a second that a session may announce …
	uploadBurst = 50
)

// Options are the timings and limits; zero values are the protocol's.
type Options struct {
	RegisterTimeout time.Duration
	PingInterval    time.Duration
	SilenceTimeout  time.Duration
	MaxSessions     int                     // connections, registered or not
	Failures        *netguard.Failures      // counts wrong tokens; nil = nobody does
	Frames          *framelog.Book          // keeps the last frames of each channel; nil = none are kept
	Note            func(ledger.Connection) // adds to the history of connections; nil = nobody keeps it
	AckTimeout      time.Duration           // of the hub: told, not enforced here
	MaxUpload       int64                   // bytes of one file: likewise
	Log             *slog.Logger
}

func (o *Options) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.RegisterTimeout, wire.RegisterTimeout)
	set(&o.PingInterval, wire.PingInterval)
	set(&o.SilenceTimeout, wire.SilenceTimeout)
	set(&o.AckTimeout, delivery.AckTimeout)
	if o.MaxUpload == 0 {
		o.MaxUpload = attach.DefaultMaxBytes
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.Note == nil {
		o.Note = func(ledger.Connection) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Slots owns all sessions and waits for them. Which of them is in which
// channel's slot, the hub decides.
type Slots struct {
	Options
	inbox Inbox
	gate  Gate
	wg    sync.WaitGroup
	asked atomic.Int64  // register frames, in the order in which they were read
	large chan struct{} // one for each large register frame of who has shown no token

	mu     sync.Mutex // guards what follows
	all    map[*Session]struct{}
	cuts   int // how often sessions were looked for to be ended, now or later
	closed bool
}

// New makes the slots of a host.
func New(inbox Inbox, gate Gate, o Options) *Slots {
	o.defaults()
	return &Slots{Options: o, inbox: inbox, gate: gate, large: make(chan struct{}, maxLargeRegisters), all: map[*Session]struct{}{}}
}

// Origin is where a connection came from.
type Origin struct {
	Transport string
	Token     string          // from the upgrade request; "" = it comes with register
	Channel   *ledger.Channel // bound to it: needs no token and may bring none; nil = the token says which
	Remote    string
	Local     bool
}

// Full reports whether another connection must wait: it is answered before its
// upgrade.
func (s *Slots) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || len(s.all) >= s.MaxSessions
}

// Len is how many connections there are, registered or not.
func (s *Slots) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

var errDraining = errors.New("the host is stopping")

// Start serves the connection in a goroutine of its own until it ends.
func (s *Slots) Start(c transport.Conn, from Origin) {
	n := newSession(s, c, from)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = c.Close(wire.CloseDraining, errDraining.Error())
		_, _ = c.Read() // frees it
		return
	}
	s.all[n] = struct{}{}
	s.wg.Go(func() {
		n.serve()
		s.mu.Lock()
		delete(s.all, n)
		s.mu.Unlock()
	})
	s.mu.Unlock()
}

// Detach closes whoever is in the channel's slot, or was let in for it and has
// not arrived yet.
func (s *Slots) Detach(channel int64, code wire.CloseCode, why string) {
	s.each(func(n *Session) bool { return n.place.channel == channel }, code, why)
}

// DetachToken closes whoever came in with the token.
func (s *Slots) DetachToken(token int64, code wire.CloseCode, why string) {
	s.each(func(n *Session) bool { return n.place.token == token }, code, why)
}

func (s *Slots) each(match func(*Session) bool, code wire.CloseCode, why string) {
	s.mu.Lock()
	s.cuts++
	var found []*Session
	for n := range s.all {
		if n.admitted && match(n) {
			found = append(found, n)
		}
	}
	s.mu.Unlock()
	for _, n := range found {
		n.shut(code, why)
	}
}

// Expire lets every session of the channel end at the given time, but those
// that came in with the token keep.
func (s *Slots) Expire(channel, keep int64, at time.Time) {
	s.mu.Lock()
	s.cuts++
	var found []*Session
	for n := range s.all {
		if n.admitted && n.place.channel == channel && n.place.token != keep {
			if end := n.place.expires; end.IsZero() || at.Before(end) {
				n.place.expires = at
			}
			found = append(found, n)
		}
	}
	s.mu.Unlock()
	for _, n := range found {
		n.pulse(time.Now(), at)
	}
}

// place is what a session keeps of its grant.
type place struct {
	channel  int64
	id, name string // of the channel
	token    int64
	expires  time.Time // zero = never
}

func (s *Slots) cutsSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts
}

// admit notes a session's grant, so that a revocation finds it from now on. It
// returns the cuts before.
func (s *Slots) admit(n *Session, g auth.Grant) (cuts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.place = place{g.Channel.Key, g.Channel.ID, g.Channel.Name, g.Token, g.ExpiresAt}
	n.admitted = true
	return s.cuts
}

// Close tells every adapter that the host stops, and waits for them.
func (s *Slots) Close() {
	s.mu.Lock()
	s.closed = true
	all := make([]*Session, 0, len(s.all))
	for n := range s.all {
		all = append(all, n)
	}
	s.mu.Unlock()
	for _, n := range all {
		n.shut(wire.CloseDraining, errDraining.Error())
	}
	s.wg.Wait()
}

// Serve is the pulse: it pings, and drops who is silent or has an expired
// token, until ctx ends. It never blocks on a connection.
func (s *Slots) Serve(ctx context.Context) error {
	tick := time.NewTicker(max(time.Millisecond, min(s.PingInterval, s.SilenceTimeout-s.PingInterval, time.Second)))
	defer tick.Stop()
	var look []expiry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := time.Now()
		look = s.expiries(look[:0])
		for _, l := range look {
			l.session.pulse(now, l.expires)
		}
		clear(look) // an idle host keeps the room, but nobody who has gone
	}
}

// expiry is when a session's token expires; zero = never.
type expiry struct {
	session *Session
	expires time.Time
}

// expiries appends those of all who were let in.
func (s *Slots) expiries(all []expiry) []expiry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.all {
		if n.admitted {
			all = append(all, expiry{n, n.place.expires})
		}
	}
	return all
}
