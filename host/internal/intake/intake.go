// Package intake reads the bodies of requests. All that are being read and decoded
// share memory that is bounded, and what a body would cost to decode is looked at
// before it is decoded.
package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// The memory of all bodies together. Bodies share it with those of about their size,
// so that large ones, which take long to come, keep nobody from short ones.
const (
	short  = 64 << 10
	medium = 1 << 20

	allShort  = 16 << 20
	allMedium = 24 << 20
	allLong   = 48 << 20
	allWork   = 64 << 20 // of what is made of them

	patience = 5 * time.Second // that a request waits for room
	tellIn   = time.Minute     // after which the log says again that there is none
)

// MaxValues is how many values the JSON of a body may have that is decoded as a whole.
const MaxValues = 20_000

// Decoding makes so many times as much of a body, and so much of each of its values.
const (
	perByte  = 4
	perValue = 400
)

// Limits are those of one body.
type Limits struct {
	Bytes  int64
	Values int // of its JSON; 0 = not bounded: it is not decoded as a whole
}

// Refusal is why a body is not taken, for its client to read.
type Refusal struct {
	Status  int
	Message string        // found what, expected what
	Retry   time.Duration // after which it makes sense to send it again; 0 = never
}

func (r *Refusal) Error() string { return "body: " + r.Message }

// Bodies reads them, for all requests of a host.
type Bodies struct {
	short, medium, long, work *paging.Budget
	log                       *slog.Logger

	mu     sync.Mutex // guards what follows
	toldAt time.Time
}

// New makes what reads bodies.
func New(log *slog.Logger) *Bodies {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	budget := func(bytes int64) *paging.Budget { return paging.NewBudget(bytes, patience) }
	return &Bodies{short: budget(allShort), medium: budget(allMedium), long: budget(allLong), work: budget(allWork), log: log}
}

// Body is one that was read, or JSON that no budget has to do with. It is not safe for concurrent use.
type Body struct {
	JSON []byte // valid until Free

	of          *Bodies
	read, begun *paging.Share // begun: before it was known how long the body is
	made        *paging.Share
}

// Read reads the body of a request, which must be closed. Its JSON is no deeper than
// MaxDepth and has no more values than the limits say; if they bound the values, its texts
// pass CheckText. Nothing else of it is checked.
// The error is a *Refusal, or that of the request's context.
func (b *Bodies) Read(r *http.Request, l Limits) (*Body, error) {
	if r.ContentLength > l.Bytes {
		discard(r, discardBytes)
		return nil, tooLarge(l.Bytes)
	}
	body := &Body{of: b}
	if err := body.fill(r, l.Bytes); err != nil {
		body.Close()
		if full, ok := errors.AsType[*Refusal](err); ok && full.Retry > 0 {
			discard(r, l.Bytes)
		}
		return nil, err
	}
	switch e := measure(body.JSON, l.Values); {
	case e.depth > MaxDepth:
		body.Close()
		return nil, &Refusal{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("too_deep: found JSON of more than %d levels, expected at most that", MaxDepth)}
	case l.Values > 0 && e.values > l.Values:
		body.Close()
		return nil, &Refusal{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("found JSON of more than %d values, expected at most that", l.Values)}
	case l.Values > 0:
		if refused := CheckText(body.JSON); refused != nil {
			body.Close()
			return nil, refused
		}
		if err := body.Work(r.Context(), perByte*len(body.JSON)+perValue*e.values); err != nil {
			body.Close()
			return nil, err
		}
	}
	return body, nil
}

// fill reads the body.
func (body *Body) fill(r *http.Request, most int64) (err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	size := r.ContentLength
	if size < 0 { // it is not said
		if body.begun, err = body.of.take(r.Context(), min(short, most)); err != nil {
			return err
		}
		if body.JSON, err = readUpTo(r.Body, make([]byte, 0, min(short, most)+1), deadline(short)); err != nil || int64(len(body.JSON)) <= min(short, most) {
			return err
		}
		size = most
	}
	if int64(len(body.JSON)) > most {
		return tooLarge(most)
	}
	if body.read, err = body.of.take(r.Context(), size); err != nil {
		return err
	}
	into := make([]byte, len(body.JSON), size+1) // one more, to see the end
	copy(into, body.JSON)
	if body.JSON, err = readUpTo(r.Body, into, deadline(size)); err == nil && int64(len(body.JSON)) > most {
		err = tooLarge(most)
	}
	return err
}

// What is read of a body that is refused: who is still sending when the connection is
// closed does not see the answer.
const (
	discardBytes = medium // of one that is too large
	discardTime  = 5 * time.Second
)

// discard reads a body of at most so many bytes to its end.
func discard(r *http.Request, most int64) {
	if r.ContentLength > most {
		return
	}
	until, room := time.Now().Add(discardTime), make([]byte, 8<<10)
	for time.Now().Before(until) && most > 0 {
		n, err := r.Body.Read(room)
		if err != nil {
			return
		}
		most -= int64(n)
	}
}

// deadline is when so many bytes must have come, since others wait for their room.
func deadline(bytes int64) time.Time { return time.Now().Add(paging.Patience(bytes)) }

// readUpTo reads to the end, or until b is full. The error is a *Refusal.
func readUpTo(from io.Reader, b []byte, until time.Time) ([]byte, error) {
	for len(b) < cap(b) {
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		var inTime net.Error
		var large *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case errors.As(err, &large):
			return b, tooLarge(large.Limit)
		case errors.As(err, &inTime) && inTime.Timeout(), time.Now().After(until):
			return b, &Refusal{Status: http.StatusRequestTimeout, Message: "came too slowly"}
		case err != nil:
			return b, &Refusal{Status: http.StatusBadRequest, Message: Unreadable(err)}
		}
	}
	return b, nil
}

// Unreadable says why a body can't be read to its end; err is that of its Read.
func Unreadable(err error) string {
	if strings.Contains(err.Error(), "chunk") { // net/http has no type for it
		return "found malformed chunks, expected those of RFC 9112, 7.1"
	}
	return "broke off before its end"
}

func tooLarge(most int64) *Refusal {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("found too much, expected at most %d bytes", most)}
}

// Work waits for room for so many bytes that are made of the body. It may be called
// once.
func (body *Body) Work(ctx context.Context, bytes int) (err error) {
	if body.of == nil { // nobody counts it
		return nil
	}
	body.made, err = body.of.room(ctx, body.of.work, int64(bytes))
	return err
}

// Free gives back the room of the JSON, which nobody reads any more.
func (body *Body) Free() {
	body.JSON = nil
	body.read.Release()
	body.begun.Release()
}

// Close gives back all room. It may be called more than once.
func (body *Body) Close() {
	body.Free()
	body.made.Release()
}

// take waits for room for a body of so many bytes.
func (b *Bodies) take(ctx context.Context, bytes int64) (*paging.Share, error) {
	switch {
	case bytes <= short:
		return b.room(ctx, b.short, bytes)
	case bytes <= medium:
		return b.room(ctx, b.medium, bytes)
	}
	return b.room(ctx, b.long, bytes)
}

func (b *Bodies) room(ctx context.Context, of *paging.Budget, bytes int64) (*paging.Share, error) {
	share, err := of.Take(ctx, bytes)
	if !errors.Is(err, paging.ErrFull) {
		return share, err
	}
	b.mu.Lock()
	now := time.Now()
	tell := now.Sub(b.toldAt) >= tellIn
	if tell {
		b.toldAt = now
	}
	b.mu.Unlock()
	if tell {
		b.log.Warn("requests refused: the bodies of others take all the memory that is for them (told once a minute)", "bytes", bytes)
	}
	return nil, &Refusal{Status: http.StatusServiceUnavailable, Message: "the host reads as much at once as its memory allows: try again later", Retry: paging.RetryAfter}
}
