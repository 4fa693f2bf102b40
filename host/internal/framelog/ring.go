// Package framelog keeps the last frames of each adapter in memory, for who debugs
// one. A frame is copied as it comes, and looked into when somebody asks for it.
package framelog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/wallclock"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What is kept.
const (
	Most      = 64       // frames of a channel
	MaxFrame  = 2 << 10  // bytes of one: a larger one is reduced as it comes
	maxRing   = 32 << 10 // bytes of a channel
	maxCrowd  = 3 << 10  // bytes of a channel once all together have more than budget
	budget    = 32 << 20
	firstRing = 256
)

// Direction is where a frame goes.
type Direction byte

// In is from the adapter, Out to it.
const (
	In Direction = iota
	Out
)

// Verdict is what became of a frame.
type Verdict byte

// The verdicts.
const (
	Accepted Verdict = iota // in: it is what the protocol allows; what becomes of its message is the message's story
	Refused                 // in: the code says why
	Written                 // out: the transport took it
	Broken                  // out: the write failed, whether it arrived is not known
	Closed                  // out: the close frame, and why
	Repeated                // in: the channel has had a message of its id, and it was not stored
	Ignored                 // in: an acknowledgement of what was not in flight
	Lenient                 // in: accepted, though a field of it is not as the protocol has it, which the code names
)

func (v Verdict) String() string {
	return [...]string{"accepted", "refused", "written", "broken", "closed", "repeated", "ignored", "lenient"}[v]
}

// Frame is one that was recorded, as it may be shown.
type Frame struct {
	Seq       int64 // ascending in its channel, since the host started
	At        time.Time
	Direction Direction
	Type      string // "" = not known
	Size      int    // of the whole frame, in bytes
	Verdict   Verdict
	Code      string // of a refusal; of a lenient one the field
	JSON      []byte // reduced; nil: it was not JSON
	Text      string // of one that was not JSON, escaped
	Cut       bool   // the end is missing
}

// Book has the rings of all channels. A nil Book records nothing.
type Book struct {
	mu    sync.Mutex // guards rings
	rings map[int64]*Ring
	bytes atomic.Int64 // of all rings
}

// NewBook makes an empty book.
func NewBook() *Book { return &Book{rings: map[int64]*Ring{}} }

// Ring is that of a channel, made if need be; nil of a nil Book.
func (b *Book) Ring(channel int64) *Ring {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rings[channel]
	if r == nil {
		r = &Ring{book: b}
		b.rings[channel] = r
	}
	return r
}

// Known is the ring of a channel, if it has one: an adapter that only attaches
// costs no memory.
func (b *Book) Known(channel int64) *Ring {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rings[channel]
}

// Forget drops what is kept of a channel that was deleted.
func (b *Book) Forget(channel int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	r := b.rings[channel]
	delete(b.rings, channel)
	b.mu.Unlock()
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b.bytes.Add(-int64(cap(r.buf)))
	r.buf, r.gone = nil, true
	r.empty()
	r.wake()
}

// Ring has the last frames of one channel. A nil Ring records nothing.
type Ring struct {
	book *Book

	mu       sync.Mutex // guards what follows
	buf      []byte     // entries: see header. They begin again at its start where its end has no room for one
	from, to int        // of the oldest one in buf, and where the next one goes
	end      int        // where those at the end of buf end, if newer ones are before them; else 0
	n        int        // entries
	last     int64      // Seq of the newest
	sizes    [Most]uint16
	clock    time.Time // the wall clock, read at most refresh before the newest
	gone     bool
	more     chan struct{} // closed by the next frame; nil = nobody waits
}

// header is what stands before a recorded frame: its length in buf, when it came
// (nanoseconds since 1970), the size of the whole, direction, verdict, flags and the
// place of its code.
const header = 2 + 8 + 4 + 1 + 1 + 1 + 1

const (
	flagReduced = 1 << iota // what is kept is what may be shown
	flagCut
)

// codes are the codes of refusals, and the fields of lenient frames, as a byte keeps them.
var codes = []wire.Code{
	"", wire.CodeBadJSON, wire.CodeNotObject, wire.CodeUnknownType, wire.CodeMissingField, wire.CodeWrongType, wire.CodeTooDeep, wire.CodeTooLarge,
	wire.CodeAlreadyRegistered, wire.CodeRateLimited, wire.CodeNotSupported, wire.CodeStorageUnavailable, wire.CodeInternal,
	wire.CodeUnknownMessage, wire.CodeUnknownField, "session_key", "conversation_id", "user_id", "user_name", "text",
}

// refresh is how long one reading of the wall clock serves.
const refresh = time.Second

// Record keeps a frame, which the caller may use again. Small ones are copied as
// they are and reduced when somebody looks; a large one, or one that is secret, is
// reduced at once.
func (r *Ring) Record(at time.Time, d Direction, frame []byte, v Verdict, code wire.Code, isSecret bool) {
	if r == nil {
		return
	}
	kept, flags := frame, byte(0)
	if len(frame) > MaxFrame || isSecret {
		out, cut, ok := Reduce(nil, frame, MaxFrame-2*MaxText)
		switch {
		case ok && len(out) <= 2*MaxFrame:
			kept, flags = out, flagReduced
			if cut {
				flags |= flagCut
			}
		case isSecret: // and not JSON: who knows what is in it
			kept, flags = nil, flagCut
		default:
			kept, flags = frame[:MaxFrame/4], flagCut
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return
	}
	if age := at.Sub(r.clock); age > refresh || age < -refresh { // to read it for each frame is dear
		r.clock = time.Now()
	}
	at = wallclock.At(at, r.clock)
	buf := r.room(header + len(kept))
	buf = binary.LittleEndian.AppendUint16(buf, uint16(len(kept)))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(at.UnixNano()))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(frame)))
	buf = append(buf, byte(d), byte(v), flags, codeByte(code))
	buf = append(buf, kept...)
	r.to += len(buf)
	r.n++
	r.last++
	r.sizes[r.last%Most] = uint16(len(buf)) // to look for it in the buffer would miss the processor's cache
	r.wake()
}

// lookBack is among how many of the newest frames Repeat looks: all sessions wait while
// it does.
const lookBack = 64

// Repeat gives the newest accepted frame with this message_id the verdict Repeated, if
// it is one of the last few and kept as it came.
func (r *Ring) Repeat(ref string) {
	if r == nil || ref == "" {
		return
	}
	quoted := []byte(`"` + ref + `"`) // an id that JSON writes another way is not found
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.to
	for i := range min(int64(r.n), lookBack) {
		if at == 0 { // those before it are at the end of buf
			at = r.end
		}
		size := int(r.sizes[(r.last-i)%Most])
		if at -= size; at < 0 {
			return
		}
		e := r.buf[at : at+size]
		if Direction(e[14]) == In && Verdict(e[15]) == Accepted && bytes.Contains(e[header:], quoted) {
			e[15] = byte(Repeated)
			return
		}
	}
}

func codeByte(c wire.Code) byte {
	if c == "" {
		return 0
	}
	for i, known := range codes {
		if known == c {
			return byte(i)
		}
	}
	return 0
}

// wake tells who waits. The mutex must be held.
func (r *Ring) wake() {
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// room drops the oldest frames until there is room for need bytes more, and returns
// that, empty. The mutex must be held.
func (r *Ring) room(need int) []byte {
	if r.n == Most {
		r.drop()
	}
	for {
		switch free := len(r.buf) - r.to; {
		case r.end > 0 && need <= r.from-r.to, r.end == 0 && need <= free:
			return r.buf[r.to:r.to:len(r.buf)]
		case r.end == 0 && need <= r.from:
			r.end, r.to = r.to, 0
		case r.grow(need):
		case r.end == 0 && r.from > 0:
			r.end, r.to = r.to, 0
		default:
			r.drop()
		}
	}
}

// grow moves the entries into a larger buffer, if it may be larger, or into one as
// large, if they are small and only lie badly. The mutex must be held.
func (r *Ring) grow(need int) bool {
	most := maxRing
	if r.book.bytes.Load() > budget {
		most = maxCrowd
	}
	most = max(most, need) // one that is larger than all may be together
	if len(r.buf) >= most {
		return false
	}
	live := r.live()
	size := max(firstRing, len(r.buf))
	for size < 2*(len(live)+need) {
		size *= 2
	}
	grown := make([]byte, min(size, most))
	for len(live)+need > len(grown) { // it is at its largest, and not enough: the oldest go
		live = live[r.drop():]
	}
	r.book.bytes.Add(int64(len(grown) - len(r.buf)))
	r.buf, r.from, r.to, r.end = grown, 0, copy(grown, live), 0
	return true
}

// live is a copy of all entries, oldest first. The mutex must be held.
func (r *Ring) live() []byte {
	if r.end > 0 {
		return slices.Concat(r.buf[r.from:r.end], r.buf[:r.to])
	}
	return slices.Clone(r.buf[r.from:r.to])
}

// drop forgets the oldest frame, and returns its size. The mutex must be held.
func (r *Ring) drop() int {
	size := int(r.sizes[(r.last-int64(r.n)+1)%Most])
	r.from += size
	if r.n--; r.n == 0 {
		r.empty()
	} else if r.from == r.end {
		r.from, r.end = 0, 0
	}
	return size
}

// empty begins anew. The mutex must be held.
func (r *Ring) empty() { r.from, r.to, r.end, r.n = 0, 0, 0, 0 }

// After is what is kept of the frames behind seq, at most n, the newest, oldest
// first; more is closed when another one comes.
func (r *Ring) After(seq int64, n int) (out []Frame, more <-chan struct{}) {
	if r == nil {
		return nil, make(chan struct{}) // never
	}
	r.mu.Lock()
	if r.more == nil {
		r.more = make(chan struct{})
	}
	more = r.more
	kept := r.live()
	first, count := r.last-int64(r.n)+1, r.n
	if seq > r.last { // of a host that ran before
		seq = 0
	}
	r.mu.Unlock()
	for i := range count {
		size := int(binary.LittleEndian.Uint16(kept))
		entry := kept[:header+size]
		kept = kept[header+size:]
		if at := first + int64(i); at > seq && count-i <= n {
			out = append(out, show(at, entry))
		}
	}
	return out, more
}

func show(seq int64, e []byte) Frame {
	f := Frame{
		Seq: seq, At: time.Unix(0, int64(binary.LittleEndian.Uint64(e[2:]))).UTC(), Size: int(binary.LittleEndian.Uint32(e[10:])),
		Direction: Direction(e[14]), Verdict: Verdict(e[15]), Cut: e[16]&flagCut != 0, Code: string(codes[e[17]]),
	}
	raw := e[header:]
	if e[16]&flagReduced != 0 {
		f.JSON = raw
	} else if out, cut, ok := Reduce(nil, raw, MaxFrame); ok && json.Valid(out) && json.Valid(raw) {
		f.JSON, f.Cut = out, f.Cut || cut
	}
	if f.JSON != nil && !json.Valid(f.JSON) {
		f.JSON = nil
		raw = nil
		f.Cut = true
	}
	if f.JSON == nil {
		f.Text = escaped(raw)
		return f
	}
	var named struct{ Type any }
	if json.Unmarshal(f.JSON, &named) == nil {
		if t, ok := named.Type.(string); ok && len(t) <= 64 {
			f.Type = t
		}
	}
	return f
}

// escaped is what was no JSON, as it may be shown: nobody knows where in it a
// secret begins, so that what follows the name of one is left out.
func escaped(raw []byte) string {
	s := string(raw)
	low := strings.ToLower(s)
	cut := len(s)
	for name := range secret {
		if i := strings.Index(low, name); i >= 0 {
			cut = min(cut, i+len(name))
		}
	}
	for name := range bulk {
		if i := strings.Index(low, `"`+name+`"`); i >= 0 {
			cut = min(cut, i+len(name)+2)
		}
	}
	if cut < len(s) && cut <= len(low) && len(low) == len(s) {
		s = s[:cut] + "… (not shown)"
	} else if len(low) != len(s) {
		s = ""
	}
	return strings.ToValidUTF8(string(withoutToken([]byte(s))), "\ufffd")
}
