package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// sender turns the host's frames into calls of the adapter, and acknowledges
// them where the host waits for that.
type sender struct {
	adapter Adapter
	log     *slog.Logger
	insist  time.Duration // how long a call that answers Retry is repeated where the host can't
	links   *links
	memory  *memory
	lanes   *lanes
}

const (
	// leastPause keeps an adapter that answers Retry at once from spinning.
	leastPause = 100 * time.Millisecond
	// sendTime bounds a call whose outcome the host waits for: it sends the frame
	// again after 60 s, and gives up the connection after 120 s.
	sendTime = 100 * time.Second
	// mostReason bounds what the host is told of an error, in bytes.
	mostReason = 1000
)

var (
	// errLacking: the host sent what the adapter never declared.
	errLacking  = errors.New("the adapter does not implement this and did not declare it")
	errNoHandle = errors.New("the platform's name of the message is not known")
)

// serve makes one call, tells the host what became of it, and logs a failure.
func (s *sender) serve(ctx context.Context, j job) {
	if j.acked {
		if said := s.memory.recall(j.Outbound); said != nil {
			s.answer(ctx, j, said)
			return
		}
	}
	to := Target{SessionKey: j.SessionKey, ConversationID: j.ConversationID, MessageID: j.MessageID, Unsolicited: j.Unsolicited}
	if j.ReplyCtx != "" {
		to.ReplyCtx = json.RawMessage(j.ReplyCtx)
	}
	var r Receipt
	err := context.Cause(ctx) // cut off before its turn came
	if err != nil {
		err = Retry(0, err)
	} else {
		r, err = s.repeat(ctx, to, j)
	}
	if err != nil {
		fault, outcome := blame(err)
		s.log.Warn("host's frame was not shown", "frame", string(j.Type), "conversation", j.ConversationID,
			"fault", fault, "outcome", outcome, "err", err)
	}
	if j.acked {
		s.answer(ctx, j, s.said(r, err))
	}
}

// repeat makes the call until it has an outcome. Where nobody else can, since the
// host waits for no word of ours, that is after a Retry too. Only its conversation
// waits meanwhile.
func (s *sender) repeat(ctx context.Context, to Target, j job) (r Receipt, err error) {
	end := time.Now().Add(s.insist)
	for {
		err = safely(s.log, string(j.Type), func() (err error) {
			r, err = s.timed(ctx, to, j)
			return err
		})
		var retry *RetryError
		if !errors.As(err, &retry) || j.acked || passes(j.Type) {
			return r, err
		}
		pause := max(retry.After, leastPause)
		if time.Now().Add(pause).After(end) {
			return r, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return r, err
		}
	}
}

// timed is call, within sendTime if the host waits.
func (s *sender) timed(ctx context.Context, to Target, j job) (Receipt, error) {
	if !j.acked {
		return s.call(ctx, to, j.Outbound)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return s.call(ctx, to, j.Outbound)
}

// passes reports frames that are worth nothing later.
func passes(t wire.Type) bool {
	return t == wire.TypeStartTyping || t == wire.TypeStopTyping || t == wire.TypeStream
}

// said is the host's acknowledgement for an outcome.
func (s *sender) said(r Receipt, err error) *wire.Later {
	if err != nil {
		_, outcome := blame(err)
		said := &wire.Later{
			Error: clip(err.Error(), mostReason), Retryable: outcome == outcomeRetryable, Ambiguous: outcome == outcomeUnknown,
		}
		var retry *RetryError
		if said.Retryable && errors.As(err, &retry) {
			said.RetryAfterMS = retry.wait().Milliseconds()
		}
		return said
	}
	if len(r.Handle) > wire.MaxField {
		s.log.Warn("receipt's handle is too long and was left out", "fault", "adapter", "bytes", len(r.Handle), "allowed", wire.MaxField)
		r.Handle = ""
	}
	return &wire.Later{OK: true, PreviewHandle: r.Handle, Note: clip(r.Note, mostReason)}
}

// answer tells the host what became of a frame, whichever connection there is
// now. What it misses it asks for again.
func (s *sender) answer(ctx context.Context, j job, said *wire.Later) {
	s.memory.keep(j.Outbound, said)
	s.memory.end(j.Outbound) // from here on, the same frame is a new one
	l := s.links.present()
	if l == nil || !l.has(wire.CapAck) {
		return
	}
	if said.Retryable && l.ahead {
		for _, behind := range s.lanes.cut(j.ConversationID, l) {
			s.memory.end(behind.Outbound)
		}
	}
	in := wire.Inbound{Type: wire.TypeMessageAck, MessageID: j.MessageID, Later: said}
	tell := l.post
	if said.Ambiguous {
		tell = l.write // what follows is right only if the host is told
	}
	switch err := tell(ctx, in.Append(nil)); {
	case err == nil && said.Ambiguous:
		s.memory.forget(j.Outbound)
	case err != nil && !errors.Is(err, errNoTurn):
		s.links.drop(l)
	}
}

func (s *sender) call(ctx context.Context, to Target, out *wire.Outbound) (Receipt, error) {
	switch out.Type {
	case wire.TypeSend:
		return s.adapter.Send(ctx, to, out.Text)
	case wire.TypeSendCard:
		if a, ok := s.adapter.(Cards); ok {
			return a.SendCard(ctx, to, out.Card)
		}
	case wire.TypeSendButtons:
		if a, ok := s.adapter.(Buttons); ok {
			return a.SendButtons(ctx, to, out.Text, out.Buttons)
		}
	case wire.TypeSendImage:
		if a, ok := s.adapter.(Media); ok {
			return a.SendImage(ctx, to, *out.Image)
		}
	case wire.TypeSendFile:
		if a, ok := s.adapter.(Media); ok {
			return a.SendFile(ctx, to, *out.File)
		}
	case wire.TypeStartTyping, wire.TypeStopTyping:
		if a, ok := s.adapter.(Typer); ok {
			return Receipt{}, a.Typing(ctx, to, out.Type == wire.TypeStartTyping)
		}
	case wire.TypeSendParts, wire.TypeSendAudio, wire.TypeSendForm:
		if a, ok := s.adapter.(Rich); ok {
			text, parts, err := partsOf(out)
			if err != nil {
				return Receipt{}, err
			}
			return a.SendParts(ctx, to, text, parts)
		}
	case wire.TypeStream, wire.TypeStreamEnd:
		if a, ok := s.adapter.(Streamer); ok {
			_, parts, err := partsOf(out)
			if err != nil {
				return Receipt{}, err
			}
			return a.Stream(ctx, to, Draft{ID: out.MessageID, Text: out.Text, Parts: parts, Final: out.Type == wire.TypeStreamEnd})
		}
	case wire.TypeUpdateMessage, wire.TypeDeleteMessage, wire.TypeSendReaction:
		return s.change(ctx, to, out)
	}
	return Receipt{}, errLacking
}

// change makes the call for what concerns an earlier message.
func (s *sender) change(ctx context.Context, to Target, out *wire.Outbound) (Receipt, error) {
	editor, edits := s.adapter.(Editor)
	reactor, reacts := s.adapter.(Reactor)
	switch {
	case out.Type == wire.TypeUpdateMessage && edits:
		return editor.Edit(ctx, to, out.PreviewHandle, out.Text)
	case out.Type == wire.TypeDeleteMessage && edits:
		handle := cmp.Or(out.PreviewHandle, s.memory.handle(out.MessageID))
		if handle == "" {
			return Receipt{}, Refused(errNoHandle)
		}
		return Receipt{}, editor.Delete(ctx, to, handle)
	case out.Type == wire.TypeSendReaction && reacts:
		handle := cmp.Or(s.memory.handle(out.MessageID), out.MessageID)
		return Receipt{}, reactor.React(ctx, to, handle, out.Emoji, out.Remove)
	}
	return Receipt{}, errLacking
}

// partsOf are the parts that a frame shows, and the same in words.
func partsOf(out *wire.Outbound) (text string, parts []message.Part, err error) {
	switch out.Type {
	case wire.TypeSendForm:
		var form message.Part
		if err := form.UnmarshalJSON(out.UI); err != nil {
			return "", nil, Refused(fmt.Errorf("the host's form: %w", err))
		}
		return form.Plain(), []message.Part{form}, nil
	case wire.TypeSendAudio:
		sound := message.AudioOutputPart{MimeType: out.Audio.MimeType, Status: message.OutputCompleted, URL: out.Audio.URL}
		if ms := float64(out.Audio.DurationMS); ms > 0 {
			sound.DurationMs = &ms
		}
		return out.Audio.Caption, []message.Part{message.NewAudioOutput(sound)}, nil
	}
	if parts, err = message.ParseParts(out.Parts); err != nil {
		return "", nil, Refused(fmt.Errorf("the host's message: %w", err))
	}
	if len(parts) == 0 {
		parts = nil
	}
	return out.Text, parts, nil
}

// What became of a message that was not shown.
const (
	outcomeRetryable = "retryable"
	outcomeRefused   = "refused"
	outcomeUnknown   = "unknown"
)

// blame says whose fault an error is and what became of the message.
func blame(err error) (fault, outcome string) {
	var retry *RetryError
	var refused *RefusedError
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		return "adapter", outcomeUnknown
	case errors.Is(err, errLacking):
		return "host", outcomeRefused
	case errors.As(err, &retry):
		return "platform", outcomeRetryable
	case errors.As(err, &refused):
		return "platform", outcomeRefused
	default:
		return "platform", outcomeUnknown
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
