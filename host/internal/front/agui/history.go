package agui

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	model "github.com/pontoon-bridge/pontoon/sdk/message/agui"
)

// Said is a message of history as AG-UI has it.
type Said struct {
	model.Message
	CreatedAt string         // as message.TimeFormat
	Parts     []message.Part // all of them, if AG-UI can't say one; else nil
}

// MarshalJSON implements json.Marshaler.
func (s Said) MarshalJSON() ([]byte, error) {
	m := s.Message
	more := map[string]json.RawMessage{}
	for name, raw := range m.More {
		more[name] = raw
	}
	var err error
	if more["createdAt"], err = json.Marshal(s.CreatedAt); err == nil && s.Parts != nil {
		more["parts"], err = json.Marshal(s.Parts)
	}
	if err != nil {
		return nil, err
	}
	m.More = more
	return json.Marshal(m)
}

// History reads up to n messages of the holder's thread, oldest first, that are
// older than before; 0 = the newest. ledger.ErrNotFound: the holder has no such thread,
// or before is not of it. Other errors are those of paging.Open. The page must be closed.
func (f *Front) History(ctx context.Context, h auth.Holder, thread string, before ledger.MessageID, n int) (*paging.Page, error) {
	channel := f.key()
	conversation, err := f.Store.Thread(ctx, channel, h.ID, thread)
	if err != nil {
		return nil, err
	}
	return f.Pages.Open(ctx, paging.Query{
		In: ledger.Scope{Channel: channel, Conversation: &conversation}, Before: before, N: n, Bytes: ledger.PageBytes, OldestFirst: true,
	})
}

// restore is the message of a stored row, with the client's own id and urls that
// can be read for a while.
func (f *Front) restore(e ledger.Entry) *message.Message {
	m := f.Hub.Seen(e)
	if _, id, ok := strings.Cut(e.PlatformID, refMark); ok {
		m.ID = id
	}
	return m
}

// said is a stored message as AG-UI has it: the results of tools are messages of
// their own.
func (f *Front) said(e ledger.Entry) []Said {
	whole := f.restore(e)
	at := e.ID.Time().Format(message.TimeFormat)
	m := *whole
	var results []message.Part
	if len(m.Parts) > 0 {
		m.Parts = nil
		for _, p := range whole.Parts {
			if r, err := message.As[message.ToolResultPart](p); err == nil && r.ToolCallID != "" {
				results = append(results, p)
				continue
			}
			m.Parts = append(m.Parts, p)
		}
	}
	var out []Said
	if len(m.Parts) > 0 || len(results) == 0 {
		one, losses := model.FromAsList(&m)
		s := Said{Message: one, CreatedAt: at}
		for _, l := range losses {
			if l.Part >= 0 {
				s.Parts = whole.Parts
			}
		}
		out = append(out, s)
	}
	for i, p := range results {
		r := message.Message{ID: resultID(whole.ID, i+1), Role: message.RoleAgent, Status: message.Status(e.Status), Parts: []message.Part{p}}
		one, _ := model.From(&r)
		out = append(out, Said{Message: one, CreatedAt: at})
	}
	return out
}
