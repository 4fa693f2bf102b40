package paging

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// List writes a JSON object whose last field is a long list, and what follows that, as
// it comes.
type List struct {
	out   *bufio.Writer // keeps the first error
	enc   *json.Encoder
	begun bool
}

// NewList begins the object, up to its list: open is the JSON before the first entry,
// such as {"messages":[.
func NewList(w io.Writer, open string) *List {
	out := bufio.NewWriterSize(w, 16<<10)
	l := &List{out: out, enc: json.NewEncoder(out)}
	l.enc.SetEscapeHTML(false)
	_, _ = out.WriteString(open)
	return l
}

// Add writes an entry.
func (l *List) Add(v any) error {
	if l.begun {
		_ = l.out.WriteByte(',')
	}
	l.begun = true
	return l.enc.Encode(v)
}

// End ends the list, and writes the fields of tail, a struct, behind it.
func (l *List) End(tail any) error {
	raw, err := json.Marshal(tail)
	if err != nil {
		return err
	}
	_ = l.out.WriteByte(']')
	if len(raw) > len("{}") {
		_ = l.out.WriteByte(',')
	}
	_, _ = l.out.Write(raw[1:])
	_ = l.out.WriteByte('\n')
	return l.out.Flush()
}

// Pacer makes the begin of Page.Each for what is written to w: who takes it too slowly
// is cut off. done is called at the end, since the connection may serve others.
func Pacer(w http.ResponseWriter) (begin func(bytes int64), done func()) {
	c := http.NewResponseController(w) // what has no deadlines is no connection
	return func(bytes int64) { _ = c.SetWriteDeadline(time.Now().Add(Patience(bytes))) }, func() { _ = c.SetWriteDeadline(time.Time{}) }
}
