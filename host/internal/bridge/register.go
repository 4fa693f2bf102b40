package bridge

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// register reads the first frame and lets the adapter in, or refuses it.
func (n *Session) register() error {
	shown := n.peek()
	if n.from.Channel == nil && (shown == nil || shown.err != nil) {
		defer n.hesitate()()
	}
	frame, err := n.conn.Read()
	if err != nil {
		return err
	}
	n.order = n.slots.asked.Add(1)
	in := new(wire.Inbound)
	werr := in.Decode(frame, wire.Dialect{})
	if werr != nil && in.Register != nil && wire.Negotiate(in.Register.Protocol) != wire.V10 {
		return n.refuseRegister(werr)
	}
	if werr == nil && in.Type != wire.TypeRegister {
		werr = wire.Refuse(wire.CodeUnknownType, "type: found %.64q, expected register", string(in.Type))
	}
	if werr != nil {
		return n.refuseAs(wire.RefusedFirstFrame, wire.RefusedFirstFrame, werr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.slots.RegisterTimeout)
	defer cancel()
	said := in.Register
	if n.from.Channel != nil {
		if said.Token != "" { // it would be another channel's: this one has none
			return n.refuse(wire.RefusedInvalidToken)
		}
		n.slots.admit(n, auth.Grant{Channel: *n.from.Channel})
		return n.attach(ctx, *n.from.Channel, said, frame)
	}
	grant, err := n.admit(ctx, said.Token, shown)
	if err != nil {
		return err
	}
	n.from.Token = "" // nobody asks for it again
	return n.attach(ctx, grant.Channel, said, frame)
}

// peek is what the token of the upgrade request opens; nil = that is not known yet. If
// it opens nothing, register is answered so: who waits for that answer does not see one
// that comes before.
func (n *Session) peek() *pass {
	token := n.from.Token
	if n.from.Channel != nil || token == "" || n.slots.Failures.Allow(n.from.Remote, netguard.Tokens) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.slots.RegisterTimeout)
	defer cancel()
	p := n.ask(ctx, token)
	if p.err != nil && !errors.Is(p.err, auth.ErrInvalid) {
		return nil
	}
	return p
}

// hesitate makes a large first frame of who has shown no token wait for its place among
// maxLargeRegisters. stop must be called.
func (n *Session) hesitate() (stop func()) {
	c, ok := n.conn.(interface{ AskRoom(ask func() error) })
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.slots.RegisterTimeout)
	held := false
	c.AskRoom(func() error {
		select {
		case n.slots.large <- struct{}{}:
			held = true
			return nil
		case <-ctx.Done():
			return errLate
		}
	})
	return func() {
		cancel()
		c.AskRoom(nil)
		if held {
			<-n.slots.large
		}
	}
}

// pass is what a token opened when it was looked at.
type pass struct {
	grant auth.Grant
	err   error
	cuts  int // before it was looked at
}

func (n *Session) ask(ctx context.Context, token string) *pass {
	p := &pass{cuts: n.slots.cutsSoFar()}
	p.grant, p.err = n.slots.gate.Admit(ctx, token)
	return p
}

// admit lets the session in by the token of the upgrade request, which was looked at,
// or else by that of register.
func (n *Session) admit(ctx context.Context, inFrame string, shown *pass) (grant auth.Grant, err error) {
	token := n.from.Token
	if token == "" {
		token = inFrame
	}
	if token == "" {
		return grant, n.refuse(wire.RefusedMissingToken)
	}
	for ctx.Err() == nil {
		if shown, err = n.look(ctx, token, shown); err != nil {
			return grant, err
		}
		// What was revoked meanwhile did not find this session: look again.
		if n.slots.admit(n, shown.grant) == shown.cuts {
			return shown.grant, nil
		}
		shown = nil
	}
	return grant, errLate
}

// look checks a token, unless it is known already what it opens; one that opens nothing
// is refused.
func (n *Session) look(ctx context.Context, token string, known *pass) (*pass, error) {
	if known == nil {
		if wait := n.slots.Failures.Allow(n.from.Remote, netguard.Tokens); wait > 0 {
			n.slots.Log.Debug("token not looked at: too many wrong ones came from there", "remote", n.from.Remote, "wait", wait)
			n.turned("token not looked at: too many wrong ones came from there")
			return nil, n.turnAway(wire.RefusedInvalidToken, wire.RefusedInvalidToken, nil)
		}
		known = n.ask(ctx, token)
	}
	switch err := known.err; {
	case errors.Is(err, auth.ErrInvalid):
		n.slots.Failures.Failed(n.from.Remote, netguard.Tokens, token)
		n.noteToken(err)
		return nil, n.turnAway(wire.RefusedInvalidToken, wire.RefusedInvalidToken, nil)
	case err != nil:
		n.slots.Log.Error("token not checked", "remote", n.from.Remote, "error", err)
		_ = n.conn.Close(wire.CloseOverload, "storage unavailable")
		return nil, err
	}
	return known, nil
}

// refuse ends a register.
func (n *Session) refuse(why string) error { return n.refuseAs(why, why, nil) }

// refuseRegister tells an adapter of 1.1 what is wrong with its register frame.
func (n *Session) refuseRegister(err *wire.Error) error {
	return n.refuseAs(wire.RefusedRegister(err), wire.RefusedFirstFrame, err)
}

// refuseAs is refuse for who is told more than the frame that closes has room for. fault is
// for log and history alone; nil = why says all.
func (n *Session) refuseAs(told, why string, fault *wire.Error) error {
	noted := why
	if fault != nil {
		noted += ": " + fault.Message
	}
	n.turned(noted)
	return n.turnAway(told, why, fault)
}

// turnAway ends a register that is noted already.
func (n *Session) turnAway(told, why string, fault *wire.Error) error {
	about := []any{"remote", n.from.Remote, "reason", why}
	if fault != nil { // 1.0 has no place for what is wrong: the log names it
		about = append(about, "code", fault.Code, "detail", fault.Message)
	}
	n.slots.Log.Info("adapter refused", about...)
	_ = n.conn.Write(wire.RegisterAck{Error: told}.Append(nil))
	_ = n.conn.Close(wire.CloseRefused, why)
	return errors.New(why)
}
