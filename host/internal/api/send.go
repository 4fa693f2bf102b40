package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/compose"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

type sendBody struct {
	ConversationID string `json:"conversation_id" maxLength:"4096"`
	compose.Body
}

type sentBody struct {
	ID       string        `json:"id" doc:"Empty for a typing indicator, which leaves no message"`
	State    string        `json:"state"`
	Degraded []render.Note `json:"degraded"`
}

func (s *server) sendMessage(ctx context.Context, in *struct {
	ChannelRef
	Once string `header:"Idempotency-Key" maxLength:"128" doc:"A request that comes again with the same key within 10 minutes gets the answer of the first, and sends nothing"`
	Body sendBody
}) (*body[sentBody], error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	b := in.Body
	if err := checkConversation(b.ConversationID); err != nil {
		return nil, err
	}
	return s.once.do(ctx, s.Now(), onceKey{channel: row.ID, key: in.Once}, b, func() (*body[sentBody], error) {
		return s.sendBody(ctx, row, b)
	})
}

func (s *server) sendBody(ctx context.Context, row ledger.Channel, b sendBody) (*body[sentBody], error) {
	if b.Typing != nil {
		if err := s.Hub.Typing(ctx, row, b.ConversationID, *b.Typing); err != nil {
			return nil, s.sendFault(err, row.Name)
		}
		if b.OnlyTyping() {
			return &body[sentBody]{sentBody{State: ledger.Sent.String(), Degraded: []render.Note{}}}, nil
		}
	}
	out, err := s.outgoing(ctx, row, b)
	if err != nil {
		return nil, err
	}
	who := holderOf(ctx)
	if who.Session == 0 { // a program's: they are too many for the audit log, and say little there
		return s.send(ctx, row, out)
	}
	out.Message.Meta = out.Message.Meta.With(message.MetaSentBy, who.Name)
	return s.sendNoted(ctx, row, out, "message.send")
}

// sendNoted is send that the audit log tells of.
func (s *server) sendNoted(ctx context.Context, row ledger.Channel, out hub.Outgoing, action string) (*body[sentBody], error) {
	sent, err := s.send(ctx, row, out)
	if err != nil {
		return nil, err
	}
	detail := map[string]string{"message": sent.Body.ID, "conversation": clip(out.Conversation)}
	if err := s.Store.Note(ctx, s.by(ctx, action, row.Name, detail)); err != nil { // it is sent: to refuse it now would have it sent twice
		s.Log.Error("sent, and not in the audit log", "channel", row.Name, "message", sent.Body.ID, "error", err)
	}
	return sent, nil
}

func (s *server) send(ctx context.Context, row ledger.Channel, out hub.Outgoing) (*body[sentBody], error) {
	sent, err := s.Hub.Send(ctx, row, out)
	if err != nil {
		return nil, s.sendFault(err, row.Name)
	}
	return &body[sentBody]{sentBody{sent.ID.String(), sent.State.String(), orEmpty(sent.Notes)}}, nil
}

func (s *server) sendFault(err error, channel string) error {
	switch {
	case errors.Is(err, hub.ErrNotAttached):
		return coded(http.StatusConflict, string(ledger.ReasonNotAttached), err.Error())
	case errors.Is(err, hub.ErrQueueFull):
		return coded(http.StatusConflict, string(ledger.ReasonQueueFull), err.Error())
	case errors.Is(err, hub.ErrContent):
		return field(http.StatusUnprocessableEntity, "body", err.Error(), "")
	case errors.Is(err, hub.ErrTooLarge):
		return coded(http.StatusUnprocessableEntity, string(ledger.ReasonFrameTooLarge), err.Error())
	}
	return s.fault(err, "channel "+channel)
}

// coded is a problem whose type and title are a reason of the closed list.
func coded(status int, code, detail string) error {
	return &huma.ErrorModel{Type: "urn:pontoon:" + code, Title: code, Status: status, Detail: code + ": " + detail}
}

func checkConversation(id string) error {
	if strings.ContainsFunc(id, unicode.IsControl) {
		return field(422, "body.conversation_id", "found a control character, expected printable text", fmt.Sprintf("%q", clip(id)))
	}
	return nil
}

// outgoing makes the message that the body describes.
func (s *server) outgoing(ctx context.Context, row ledger.Channel, b sendBody) (hub.Outgoing, error) {
	if err := s.checkPaths(b.Content); err != nil {
		return hub.Outgoing{}, err
	}
	m, err := b.Message()
	if err != nil {
		return hub.Outgoing{}, refusal(err)
	}
	out := hub.Outgoing{Conversation: b.ConversationID, Message: m}
	if b.Update == nil {
		return out, nil
	}
	if err := b.Update.Check(); err != nil {
		return out, refusal(err)
	}
	handle := b.Update.PreviewHandle
	if handle == "" {
		e, err := s.message(ctx, row, "body.update.message_id", b.Update.MessageID, http.StatusUnprocessableEntity)
		if err != nil {
			return out, err
		}
		handle = packed.EditHandle(&e)
	}
	b.Update.Mark(&out.Message, handle)
	return out, nil
}

// checkPaths refuses paths of files that are not for whoever holds a key to
// hand out.
func (s *server) checkPaths(c compose.Content) error {
	for _, p := range c.Paths() {
		if err := s.Attachments.CheckPath(p.Path); err != nil {
			return field(422, "body."+p.At, err.Error(), clip(p.Path))
		}
	}
	return nil
}

// message reads a message of the channel by the id that a request names at;
// unknown is the status if there is none.
func (s *server) message(ctx context.Context, row ledger.Channel, at, id string, unknown int) (ledger.Entry, error) {
	mid, err := ledger.ParseMessageID(id)
	if err != nil {
		return ledger.Entry{}, field(422, at, err.Error(), clip(id))
	}
	e, err := s.Store.Message(ctx, mid)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && e.Channel != row.Key {
		return e, field(unknown, at, "no such message in this channel", id)
	}
	if err != nil {
		return e, s.fault(err, "message "+id)
	}
	return e, nil
}

type testRequest struct {
	ConversationID *string `json:"conversation_id,omitempty" maxLength:"4096"`
}

func (s *server) testChannel(ctx context.Context, in *struct {
	ChannelRef
	Body *testRequest // nil = the latest conversation
}) (*body[testBody], error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var key string
	if in.Body != nil && in.Body.ConversationID != nil {
		key = *in.Body.ConversationID
	} else {
		latest, err := s.Store.Conversations(ctx, []int64{row.Key}, 0, 1)
		if err != nil {
			return nil, s.fault(err, "conversations")
		}
		if len(latest) == 0 {
			return nil, field(422, "body.conversation_id", "absent, and the channel has no conversation yet: name one", "")
		}
		key = latest[0].Key
	}
	if err := checkConversation(key); err != nil {
		return nil, err
	}
	events, end := s.Hub.Events.Subscribe() // before it is sent, for its answer may come at once
	defer end()
	a, attached := s.Hub.Attached(row.Key)
	test := message.Text("Test message from Pontoon.")
	if who := holderOf(ctx); who.Session != 0 {
		test.Meta = test.Meta.With(message.MetaSentBy, who.Name)
	}
	sent, err := s.sendNoted(ctx, row, hub.Outgoing{Conversation: key, Message: test}, "message.test")
	if err != nil {
		return nil, err
	}
	out := testBody{sentBody: sent.Body, ConversationID: key, Detail: "Written to the adapter, which can't confirm that the platform took it."}
	switch {
	case attached && a.Effective.Has(wire.CapAck):
		out.await(ctx, events)
	case out.State == ledger.Queued.String():
		out.Detail = "Queued: it is written when an adapter attaches."
	}
	return &body[testBody]{out}, nil
}

// testWait is how long a test message waits for the platform's word.
const testWait = 5 * time.Second

// await waits for what the adapter says of the message.
func (t *testBody) await(ctx context.Context, events <-chan *hub.Event) {
	late := time.NewTimer(testWait)
	defer late.Stop()
	t.Detail = "Not confirmed within " + testWait.String() + ": the platform may still confirm it."
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			if e.Type != hub.EventState || e.ID.String() != t.ID {
				continue
			}
			switch t.State = e.State.String(); e.State {
			case ledger.Delivered:
				t.Confirmed, t.Detail = true, "Confirmed: the platform took it."
				return
			case ledger.Failed, ledger.Expired:
				t.Detail = "Not taken: " + string(e.Reason) + "."
				return
			}
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

type testBody struct {
	sentBody
	ConversationID string `json:"conversation_id"`
	Confirmed      bool   `json:"confirmed" doc:"Whether the platform confirmed it"`
	Detail         string `json:"detail"`
}
