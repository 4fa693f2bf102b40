package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// An id names one message of one run: run-connection-sequence, all digits of
// fixed width, so that a frame is made by overwriting digits.
const (
	runDigits  = 6
	connDigits = 5
	seqDigits  = 9
	convDigits = 6
	idLen      = runDigits + 1 + connDigits + 1 + seqDigits
)

// turnPrefix asks the echo agent to answer in a turn of its own.
const turnPrefix = "!turn "

const padding = "the quick brown fox jumps over the lazy dog "

// idOf is the id of a message of a connection.
func idOf(run, conn, seq int) string {
	return fmt.Sprintf("%0*d-%0*d-%0*d", runDigits, run, connDigits, conn, seqDigits, seq)
}

// stamped is text that has the id of a message in it, once or more often.
type stamped struct {
	text   []byte
	prefix []byte // of every id
	seqAt  []int  // where the sequence is written
}

// stampedWith is text that has this id in it now.
func stampedWith(text []byte, id string) stamped {
	s := stamped{text: text, prefix: []byte(id[:idLen-seqDigits])}
	for at := 0; ; {
		next := bytes.Index(text[at:], []byte(id))
		if next < 0 {
			return s
		}
		at += next + idLen
		s.seqAt = append(s.seqAt, at-seqDigits)
	}
}

// of is the text of a sequence number, good until the next call.
func (s *stamped) of(seq int) []byte {
	for _, at := range s.seqAt {
		putDigits(s.text[at:at+seqDigits], seq)
	}
	return s.text
}

// sequence reads an id; false if it is not one of this text.
func (s *stamped) sequence(id []byte) (int, bool) {
	if len(id) != idLen || !bytes.HasPrefix(id, s.prefix) {
		return 0, false
	}
	return digits(id[idLen-seqDigits:])
}

// template makes the message frames of one connection. Sequence numbers count
// from 0; the conversations take turns.
type template struct {
	conn          int
	conversations int
	stamped              // the frame, with the WebSocket header and a mask of zeros
	header        int    // its length
	said          string // the message's text with sequence 0
	idAt          int    // where the id begins in it
	convAt        [2]int
}

// newTemplate makes frames of size bytes of JSON.
func newTemplate(run, conn int, s Scenario) (*template, error) {
	t := &template{conn: conn, conversations: s.Conversations}
	id := idOf(run, conn, 0)
	conv := fmt.Sprintf("b%0*d-%0*d", connDigits, conn, convDigits, 0)
	in := wire.Inbound{
		Type: wire.TypeMessage, UserID: "user-1", UserName: "Bench", Text: id,
		Routing: wire.Routing{SessionKey: "bench:" + conv, ConversationID: conv, ReplyCtx: wire.Raw(`"` + id + `"`)},
	}
	if s.Turns {
		in.Text = turnPrefix + in.Text
	}
	if s.Acks > 0 {
		in.MessageID = id
	}
	spare := s.Size - len(in.Append(nil))
	if spare < 0 {
		return nil, fmt.Errorf("frame size: found %d bytes, expected at least %d", s.Size, s.Size-spare)
	}
	if spare > 0 {
		in.Text += " " + string(bytes.Repeat([]byte(padding), spare/len(padding)+1)[:spare-1])
	}
	t.said, t.idAt = in.Text, strings.Index(in.Text, id)
	frame := in.Append(clientHeader(s.Size))
	t.stamped = stampedWith(frame, id)
	t.header = len(frame) - s.Size
	t.convAt = [2]int{bytes.Index(frame, []byte(conv)) + len(conv) - convDigits, bytes.LastIndex(frame, []byte(conv)) + len(conv) - convDigits}
	return t, nil
}

// clientHeader is the header of a text frame masked with zeros, which leaves
// the payload as it is.
func clientHeader(size int) []byte {
	h := []byte{0x81, 0x80}
	switch {
	case size < 126:
		h[1] |= byte(size)
	case size < 1<<16:
		h[1] |= 126
		h = binary.BigEndian.AppendUint16(h, uint16(size))
	default:
		h[1] |= 127
		h = binary.BigEndian.AppendUint64(h, uint64(size))
	}
	return append(h, 0, 0, 0, 0)
}

// clientFrame is a payload as a text frame.
func clientFrame(payload []byte) []byte { return append(clientHeader(len(payload)), payload...) }

// message is the frame of a sequence number, good until the next call.
func (t *template) message(seq int) []byte {
	frame := t.of(seq)
	if t.conversations > 1 {
		for _, at := range t.convAt {
			putDigits(frame[at:at+convDigits], seq%t.conversations)
		}
	}
	return frame
}

// textOf is the text of a sequence number.
func (t *template) textOf(seq int) string {
	b := []byte(t.said)
	putDigits(b[t.idAt+idLen-seqDigits:t.idAt+idLen], seq)
	return string(b)
}

func putDigits(dst []byte, n int) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

func digits(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

var (
	keyType      = []byte(`"type"`)
	keyReplyCtx  = []byte(`"reply_ctx"`)
	keyMessageID = []byte(`"message_id"`)
	keyText      = []byte(`"text"`)
)

// value finds a string field by its quoted key without reading the rest of the
// frame: our own text holds no quotes.
func value(frame, key []byte) []byte {
	i := bytes.Index(frame, key)
	if i < 0 {
		return nil
	}
	rest := frame[i+len(key):]
	start := bytes.IndexByte(rest, '"')
	if start < 0 || len(bytes.Trim(rest[:start], ": \t\r\n")) > 0 {
		return nil
	}
	rest = rest[start+1:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil
	}
	return rest[:end]
}

// isAnswer reports whether a frame of this type carries an answer; a raw server
// gives the message back.
func isAnswer(kind []byte) bool {
	switch wire.Type(kind) {
	case wire.TypeSend, wire.TypeMessage:
		return true
	}
	return false
}
