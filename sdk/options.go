package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// DefaultURL is where a host listens that was not told otherwise.
const DefaultURL = "http://127.0.0.1:8080"

// Options say how Run finds the host.
type Options struct {
	// URL is the host's base (http:// or https://), or the address of its
	// WebSocket (ws:// or wss://), which is taken as it is if it has a path.
	// "" = DefaultURL.
	URL string
	// Token is the channel's. It travels in a header and is never logged.
	Token string
	// Config is the adapter's configuration, a JSON object, for Host.Config.
	Config json.RawMessage
	// Log takes the SDK's own lines and the adapter's; nil = slog.Default().
	Log *slog.Logger
	// Protocol is the newest that is spoken: "1.0" or "1.1"; "" = 1.1. A host of
	// 1.0 needs no "1.0": it says itself that it speaks no more.
	Protocol string
	// NoAck leaves out acknowledgements in both directions: Deliver returns when
	// the event is written, and the host takes what it wrote for sent.
	NoAck bool
	// Accept waits for the host to connect, in place of a WebSocket to URL: package
	// sdk/plugin sets it. An error of it ends Run. Once the host has ended a
	// connection for good, Run returns ErrDetached.
	Accept func(context.Context) (transport.Conn, error)

	dial   dialFunc // of tests; nil = Accept, or a WebSocket to URL
	timing *timing  // nil = defaultTiming
}

// dialer is how the options say that a connection is made.
func (o *Options) dialer(log *slog.Logger) (dialFunc, error) {
	switch {
	case o.dial != nil:
		return o.dial, nil
	case o.Accept != nil:
		return func(ctx context.Context) (transport.Conn, error) {
			c, err := o.Accept(ctx)
			if err != nil {
				return nil, &acceptError{err}
			}
			return c, nil
		}, nil
	}
	address, err := endpoint(o.URL)
	if err != nil {
		return nil, err
	}
	log.Info("adapter starts", "host", shown(address))
	return dialWebSocket(address, o.Token), nil
}

// timing holds every duration that a test wants shorter.
type timing struct {
	register  time.Duration // connection → register_ack
	silence   time.Duration // nothing heard for this long: the host is dead
	firstWait time.Duration // before the first repetition, jittered
	lastWait  time.Duration // before any later one, jittered
	settled   time.Duration // what lived this long starts again at firstWait
	grace     time.Duration // stop asked for → sends are cut off
	abandon   time.Duration // cut off → given up
	insist    time.Duration // a call that answers Retry is repeated for so long
}

var defaultTiming = timing{
	register:  wire.RegisterTimeout,
	silence:   75 * time.Second, // the host pings every 54 s
	firstWait: 500 * time.Millisecond,
	lastWait:  30 * time.Second,
	settled:   5 * time.Second,
	grace:     5 * time.Second,
	abandon:   time.Second,
	insist:    time.Minute,
}

// maxPending bounds the host's frames that wait for the adapter. Beyond it the
// connection is not read, which the host feels.
const maxPending = 1024

func (t *timing) backoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = t.firstWait
	b.MaxInterval = t.lastWait
	b.Multiplier = 2
	b.Reset()
	return b
}

// endpoint is the WebSocket's address for what the operator gave.
func endpoint(given string) (string, error) {
	return transport.Endpoint(cmp.Or(given, DefaultURL), wire.Path)
}

// shown is the address without what may be secret.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}
