package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// dialFunc opens one connection to the host.
type dialFunc func(context.Context) (transport.Conn, error)

// dialWebSocket dials address with the token in a header.
func dialWebSocket(address, token string) dialFunc {
	header := http.Header{}
	if token != "" {
		header.Set("X-Bridge-Token", token)
	}
	return func(ctx context.Context) (transport.Conn, error) {
		c, err := transport.Dial(ctx, address, header)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

var (
	errNoAck  = errors.New("host did not answer register")
	errSilent = errors.New("host was silent for too long")
)

// connector keeps the adapter connected.
type connector struct {
	dial   dialFunc
	dialed bool      // by the host
	hello  []byte    // the register frame
	caps   wire.Caps // that it declares
	links  *links
	memory *memory
	lanes  *lanes
	status *status
	log    *slog.Logger
	timing *timing
	first  sync.Once
	ready  chan struct{} // closed at the first successful register
}

// registerFrame is what the adapter says of itself: in protocol 1.0 alone if
// there is no profile.
func registerFrame(platform string, caps wire.Caps, profile *wire.Profile) []byte {
	about := map[string]string{"sdk": "go"}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		about["version"] = info.Main.Version
	}
	metadata, _ := json.Marshal(about) // strings can't fail
	r := &wire.Register{Platform: platform, Capabilities: caps.Names(), Metadata: wire.Raw(metadata)}
	if profile != nil {
		r.Protocol = wire.V11.String()
		if *profile != (wire.Profile{}) {
			r.Profile = profile
		}
	}
	in := wire.Inbound{Type: wire.TypeRegister, Register: r}
	return in.Append(nil)
}

// serve connects, again and again, until ctx ends (nil) or the host says for
// good that it does not want this adapter. When ctx ends an established
// connection stays until links.end; frames are served with work.
func (c *connector) serve(ctx, work context.Context) error {
	defer c.links.end()
	wait := c.timing.backoff()
	quiet := false // the present state is already in the log
	for {
		lived, err := c.session(ctx, work)
		switch {
		case ctx.Err() != nil:
			return nil
		case final(err) != nil:
			return final(err)
		case c.dialed && lived > 0 && !comesAgain(err):
			return fmt.Errorf("%w: %w", ErrDetached, err)
		}
		if lived >= c.timing.settled {
			wait.Reset()
		}
		pause := wait.NextBackOff()
		if c.dialed {
			pause = 0
		}
		level := slog.LevelWarn
		if quiet && lived == 0 {
			level = slog.LevelDebug
		}
		quiet = true
		c.log.Log(ctx, level, "not connected to the host, will try again", "err", err, "in", pause.Round(time.Millisecond))
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// session is one connection from dial to its end; lived counts from register_ack.
func (c *connector) session(ctx, work context.Context) (lived time.Duration, err error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return 0, err
	}
	l := newLink(conn)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer l.end()
	ack, err := c.register(ctx, work, l)
	if err != nil {
		l.abandon("")
		return 0, err
	}
	began := time.Now()
	if !c.links.set(l, ack.Cursor) {
		l.abandon("adapter stopped")
		return 0, ErrStopped
	}
	defer c.links.drop(l)
	c.lanes.on(l)
	c.status.again(work, l)
	c.log.Info("connected to the host", "protocol", l.protocol.String(), "capabilities", l.caps.String())
	c.first.Do(func() { close(c.ready) })
	watcher.Go(func() { l.watch(c.timing.silence) })
	for {
		out, err := c.next(l)
		if err != nil {
			if errors.Is(err, transport.ErrClosed) && time.Since(conn.Heard()) >= c.timing.silence {
				err = errSilent
			}
			return max(time.Since(began), 1), err
		}
		if err := c.receive(work, l, out); err != nil {
			l.abandon("adapter stopped")
			return time.Since(began), err
		}
	}
}

// register sends the register frame and waits for the answer.
func (c *connector) register(ctx, work context.Context, l *link) (*wire.RegisterAck, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timing.register, errNoAck)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.conn.Close(wire.CloseNormal, "") })
	defer stop()
	failed := func(err error) error {
		if ctx.Err() != nil { // which closed the connection
			return context.Cause(ctx)
		}
		return fmt.Errorf("register: %w", err)
	}
	if err := l.write(ctx, c.hello); err != nil {
		return nil, failed(err)
	}
	for {
		out, err := c.next(l)
		switch {
		case err != nil:
			return nil, failed(err)
		case out.Ack == nil:
			if err := c.receive(work, l, out); err != nil {
				return nil, err
			}
		case out.Ack.OK:
			l.accept(out.Ack, c.caps)
			for _, warning := range out.Ack.Warnings {
				c.log.Warn("host warns of the register frame", "warning", warning)
			}
			return out.Ack, nil
		default:
			return nil, &RegisterError{Reason: out.Ack.Error}
		}
	}
}

// next reads the next frame that can be decoded.
func (c *connector) next(l *link) (*wire.Outbound, error) {
	for {
		frame, err := l.read()
		if err != nil {
			return nil, err
		}
		out, err := wire.DecodeOutbound(frame)
		if err == nil {
			return out, nil
		}
		c.log.Warn("host sent a frame that can't be read", "fault", "host", "err", err)
	}
}

// receive takes one frame of the host; an error means that work ended.
func (c *connector) receive(work context.Context, l *link, out *wire.Outbound) error {
	switch out.Type {
	case wire.TypeSend, wire.TypeSendCard, wire.TypeSendButtons, wire.TypeUpdateMessage, wire.TypeSendImage, wire.TypeSendFile,
		wire.TypeSendParts, wire.TypeStreamEnd, wire.TypeSendAudio, wire.TypeSendForm, wire.TypeDeleteMessage, wire.TypeSendReaction:
		j := job{Outbound: out, acked: l.has(wire.CapAck) && out.MessageID != "", link: l}
		if j.acked && !c.memory.begin(out) {
			return nil // it is under way: its answer is one for both
		}
		taken, err := c.lanes.put(work, j)
		if !taken {
			c.memory.end(out)
		}
		return err
	case wire.TypeStartTyping, wire.TypeStopTyping, wire.TypeStream:
		_, err := c.lanes.put(work, job{Outbound: out})
		return err
	case wire.TypeMessageAck:
		l.settle(out.MessageAck.MessageID, answer{ack: out.MessageAck})
	case wire.TypeUploadAck:
		l.settle(out.UploadAck.MessageID, answer{upload: out.UploadAck})
	case wire.TypeError:
		if out.Error.Code == wire.CodeUnknownMessage { // of an acknowledgement that crossed the host's own: nobody waits for it
			c.log.Debug("host ignored an acknowledgement", "message", out.Error.Message)
			return nil
		}
		if out.Error.Ref != "" && l.settle(out.Error.Ref, answer{refuse: out.Error}) {
			return nil // whoever waits for it says so
		}
		c.log.Warn("host refused a frame", "code", string(out.Error.Code), "message", out.Error.Message)
	case wire.TypePong, wire.TypeRegisterAck:
	default:
		c.log.Debug("frame of unknown type ignored", "type", string(out.Type))
	}
	return nil
}

// final is what err means for the adapter if no new connection would help, else nil.
func final(err error) error {
	var accept *acceptError
	var refused *RegisterError
	var closed *transport.CloseError
	switch {
	case errors.As(err, &accept):
		return accept.error
	case errors.As(err, &refused):
		if wire.RefusedForGood(refused.Reason) {
			return refused
		}
		return nil
	case !errors.As(err, &closed) || closed.Code.Reconnect():
		return nil
	case closed.Code == wire.CloseReplaced:
		return fmt.Errorf("%w: %w", ErrReplaced, closed)
	case closed.Code == wire.CloseRevoked:
		return fmt.Errorf("%w: %w", ErrRevoked, closed)
	default:
		return fmt.Errorf("host wants no new connection: %w", closed)
	}
}

// comesAgain reports whether a host that ended a plugin's stream may attach again
// (docs/plugins.md).
func comesAgain(err error) bool {
	var closed *transport.CloseError
	return errors.As(err, &closed) && (closed.Code == wire.CloseOverload || closed.Code == wire.CloseTooSlow)
}

// sleep reports whether it slept through: false = ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
