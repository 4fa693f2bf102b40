// Package irc bridges one IRC network to a Pontoon host.
//
// It joins the configured channels and speaks when spoken to: in a channel to
// whoever names its nick (or to all, if the operator says so), in a direct
// message always. It answers with NOTICE and never listens to one, so that two
// bots can't talk each other into a loop; for the same reason it ignores itself,
// CTCP other than "/me", and history that a server or bouncer replays.
//
// # Who is who
//
// Event.UserID is the services account of the sender ("alice"), if the network
// has the IRCv3 capability account-tag and the user is logged in; otherwise
// user@host ("~alice@host.example"), as the server shows it. The first can't be
// had without the account's password. The second is as good as the host part:
// the server vouches for it, but everyone behind one host or cloak shares it.
// A nick alone is never an identity, since anyone may take a free one. The two
// forms can't be confused: an account with an @ in its name counts as user@host.
//
// Event.ConversationID is the folded channel name, or the folded nick of a
// direct message. No nick starts like a channel, so the two can't collide.
//
// # How it runs
//
// Adapter.Run owns a reconnect loop and one goroutine that hands events to the
// host. Each connection has a reader goroutine, and the loop itself is the only
// writer of the connection's state (link). Send runs in its caller, paces its
// lines by the connection's flood limit, and returns when the server has
// processed them: it ends an answer with a PING, which the server answers in order.
package irc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// errOffline is why nothing can be sent before, between and after connections.
var errOffline = errors.New("not connected to the IRC server")

// retryOffline is when the host may try again what errOffline refused.
const retryOffline = 5 * time.Second

// Adapter is one IRC network. Make it with New.
type Adapter struct {
	tune timing
	set  *settings // of Setup

	mu     sync.Mutex
	client *client // of the Run under way; nil before and after it
}

var (
	_ sdk.Adapter = (*Adapter)(nil)
	_ sdk.Setuper = (*Adapter)(nil)
)

// New makes an adapter; its configuration (Config) comes with Setup.
func New() *Adapter { return &Adapter{tune: defaultTiming} }

// Setup reads the configuration. A wrong one is sdk.Refused. Whether the network lets us
// in, Run finds out: it is told to the host as the platform's status, and may change.
func (a *Adapter) Setup(_ context.Context, given sdk.Config) error {
	var cfg Config
	if err := given.Decode(&cfg); err != nil {
		return err // Refused already
	}
	set, err := cfg.check()
	if err != nil {
		return sdk.Refused(fmt.Errorf("configuration: %w", err))
	}
	a.set = set
	return nil
}

// Run stays connected until ctx ends.
func (a *Adapter) Run(ctx context.Context, h *sdk.Host) error {
	c := newClient(a.set, a.tune, h, h.Log)
	a.use(c)
	defer a.use(nil)
	return c.serve(ctx)
}

// Send says text to where to points and returns when the server has taken all
// of it. The receipt has no handle, since IRC can't edit, and says how many lines max_lines
// cut. Its error is
//
//   - sdk.Retry: nothing was said; there is no connection, the channel is not
//     joined at the moment, or too much is waiting for the flood limit;
//   - sdk.Refused: the server or the adapter will not say it there;
//   - any other: the connection was lost after some of it was written.
func (a *Adapter) Send(ctx context.Context, to sdk.Target, text string) (sdk.Receipt, error) {
	a.mu.Lock()
	c := a.client
	a.mu.Unlock()
	if c == nil {
		return sdk.Receipt{}, sdk.Retry(retryOffline, errOffline)
	}
	return c.send(ctx, to, text)
}

func (a *Adapter) use(c *client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client = c
}

// timing is every wait that is not the operator's to choose.
type timing struct {
	dial       time.Duration // TCP and TLS
	register   time.Duration // from there to the end of the message of the day; ident look-ups may take 30 s of it
	write      time.Duration // one line into the socket
	pingAfter  time.Duration // silence before we ask whether the server lives
	pongWithin time.Duration // and what it has to answer
	confirm    time.Duration // last line of an answer → server has processed it
	upkeep     time.Duration // between two looks at what is due
	rejoin     time.Duration // after a kick or a refused JOIN; doubles up to rejoinMax
	rejoinMax  time.Duration
	regain     time.Duration // between two tries to get the configured nick back
	retryFirst time.Duration // first reconnect; grows up to retryMax
	retryMax   time.Duration
	finish     time.Duration // answers under way at the end of Run
	stable     time.Duration // a connection that lived this long starts the back-off anew
}

var defaultTiming = timing{
	dial:       30 * time.Second,
	register:   time.Minute,
	write:      10 * time.Second,
	pingAfter:  time.Minute,
	pongWithin: 30 * time.Second,
	confirm:    15 * time.Second,
	upkeep:     time.Second,
	rejoin:     20 * time.Second,
	rejoinMax:  10 * time.Minute,
	regain:     time.Minute,
	retryFirst: time.Second,
	retryMax:   2 * time.Minute,
	finish:     3 * time.Second,
	stable:     time.Minute,
}
