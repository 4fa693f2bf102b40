package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// sender turns the host's frames into calls of the adapter.
type sender struct {
	adapter Adapter
	log     *slog.Logger
	insist  time.Duration // how long a call that answers Retry is repeated
}

// leastPause keeps an adapter that answers Retry at once from spinning.
const leastPause = 100 * time.Millisecond

// errLacking: the host sent what the adapter never declared.
var errLacking = errors.New("the adapter does not implement this and did not declare it")

// serve makes one call and logs what became of it: protocol 1.0 has no way to
// tell the host.
func (s *sender) serve(ctx context.Context, out *wire.Outbound) {
	to := Target{SessionKey: out.SessionKey, ConversationID: out.ConversationID}
	if out.ReplyCtx != "" {
		to.ReplyCtx = json.RawMessage(out.ReplyCtx)
	}
	err := context.Cause(ctx) // cut off before its turn came
	if err == nil {
		err = s.repeat(ctx, to, out)
	}
	if err == nil {
		return
	}
	fault, outcome := blame(err)
	s.log.Warn("host's frame was not shown", "frame", string(out.Type), "conversation", out.ConversationID,
		"fault", fault, "outcome", outcome, "err", err)
}

// repeat makes the call until it has an outcome. Nobody else can: protocol 1.0
// can't ask the host to send it again. Only its conversation waits meanwhile.
func (s *sender) repeat(ctx context.Context, to Target, out *wire.Outbound) error {
	end := time.Now().Add(s.insist)
	for {
		err := safely(s.log, string(out.Type), func() error { return s.call(ctx, to, out) })
		var retry *RetryError
		if !errors.As(err, &retry) || out.Type == wire.TypeStartTyping || out.Type == wire.TypeStopTyping {
			return err
		}
		pause := max(retry.After, leastPause)
		if time.Now().Add(pause).After(end) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *sender) call(ctx context.Context, to Target, out *wire.Outbound) (err error) {
	switch out.Type {
	case wire.TypeSend:
		_, err = s.adapter.Send(ctx, to, out.Text)
		return err
	case wire.TypeSendCard:
		if a, ok := s.adapter.(Cards); ok {
			_, err = a.SendCard(ctx, to, out.Card)
			return err
		}
	case wire.TypeSendButtons:
		if a, ok := s.adapter.(Buttons); ok {
			_, err = a.SendButtons(ctx, to, out.Text, out.Buttons)
			return err
		}
	case wire.TypeSendImage:
		if a, ok := s.adapter.(Media); ok {
			_, err = a.SendImage(ctx, to, *out.Image)
			return err
		}
	case wire.TypeSendFile:
		if a, ok := s.adapter.(Media); ok {
			_, err = a.SendFile(ctx, to, *out.File)
			return err
		}
	case wire.TypeUpdateMessage:
		if a, ok := s.adapter.(Editor); ok {
			_, err = a.Edit(ctx, to, out.PreviewHandle, out.Text)
			return err
		}
	case wire.TypeStartTyping, wire.TypeStopTyping:
		if a, ok := s.adapter.(Typer); ok {
			return a.Typing(ctx, to, out.Type == wire.TypeStartTyping)
		}
	}
	return errLacking
}

// blame says whose fault an error is and what became of the message.
func blame(err error) (fault, outcome string) {
	var retry *RetryError
	var refused *RefusedError
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		return "adapter", "unknown"
	case errors.Is(err, errLacking):
		return "host", "refused"
	case errors.As(err, &retry):
		return "platform", "retryable"
	case errors.As(err, &refused):
		return "platform", "refused"
	default:
		return "platform", "unknown"
	}
}

// safely calls f, and makes an error of a panic.
func safely(log *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("adapter panicked", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &panicError{p}
		}
	}()
	return f()
}
