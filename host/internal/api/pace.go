package api

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/danielgtaylor/huma/v2"
)

// atOnce is how many messages of a page are made or written before those who
// deliver may use the processor: a reader of history must not hold them up.
const atOnce = 4

// pace follows the message i of a page.
func (s *server) pace(i int) {
	if i%atOnce == atOnce-1 {
		s.Store.GiveWay()
	}
}

// format writes answers as the library does, but a page of messages in pieces.
func (s *server) format() huma.Format {
	f := huma.DefaultJSONFormat
	whole := f.Marshal
	f.Marshal = func(w io.Writer, v any) error {
		if list, ok := v.(messageList); ok {
			return s.writeMessages(w, list)
		}
		return whole(w, v)
	}
	return f
}

func (s *server) writeMessages(w io.Writer, list messageList) error {
	out := bufio.NewWriterSize(w, 16<<10) // keeps the first error
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_, _ = out.WriteString(`{"messages":[`)
	for i := range list.Messages {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		if err := enc.Encode(&list.Messages[i]); err != nil {
			return err
		}
		s.pace(i)
	}
	_ = out.WriteByte(']')
	if list.NextCursor != "" {
		_, _ = out.WriteString(`,"next_cursor":`)
		if err := enc.Encode(list.NextCursor); err != nil {
			return err
		}
	}
	_, _ = out.WriteString("}\n")
	return out.Flush()
}
