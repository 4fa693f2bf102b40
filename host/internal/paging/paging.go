// Package paging reads many messages with little memory: what a request shows is read
// a chunk at a time, and all that requests have read at once is bounded.
package paging

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// The bounds of what is in memory. A message that is shown takes a multiple of its
// bytes: it is read, decoded, and its JSON has what it says up to three times.
const (
	Chunk  = 512 << 10 // bytes of messages that one request has in memory at a time, unless one alone is larger
	factor = 8

	allChunks = 64 << 20 // memory of all requests together …
	allLarge  = 96 << 20 // … and of those that show a message larger than a chunk

	patience = 5 * time.Second // that a request waits for room
)

// Store is where messages are read.
type Store interface {
	Before(ctx context.Context, in ledger.Scope, before ledger.MessageID, n int) ([]ledger.Entry, error)
	Entries(ctx context.Context, ids []ledger.MessageID) ([]ledger.Entry, error)
	ledger.Planner
}

// Pages reads messages for all requests of a host.
type Pages struct {
	store         Store
	chunks, large *Budget
}

// New makes what reads from a store.
func New(s Store) *Pages {
	return &Pages{store: s, chunks: NewBudget(allChunks, patience), large: NewBudget(allLarge, patience)}
}

// Query is a page that is wanted.
type Query struct {
	In          ledger.Scope
	Before      ledger.MessageID // older ones; 0 = from the newest on
	N           int              // most messages
	Bytes       int              // most bytes of them, but for one that alone is larger; 0 = no bound
	OldestFirst bool
}

// Open reads the first messages of a page. Errors are ErrFull, ledger.ErrNotFound if
// Before is not of the scope, and those of storage. The page must be closed.
func (p *Pages) Open(ctx context.Context, q Query) (*Page, error) {
	page, err := p.small(ctx, q)
	if !errors.Is(err, ledger.ErrPageBytes) {
		return page, err
	}
	list, err := p.store.Headings(ctx, q.In, q.Before, q.N)
	if err != nil {
		return nil, err
	}
	more := len(list) >= q.N
	if q.Bytes > 0 {
		if n := ledger.Fitting(list, q.Bytes); n < len(list) {
			list, more = list[:n], true
		}
	}
	page = &Page{of: p, left: list}
	if more {
		page.Next = list[len(list)-1].ID
	}
	if q.OldestFirst {
		slices.Reverse(page.left)
	}
	return page, page.begin(ctx)
}

// small reads a page that is no larger than a chunk; else the error is
// ledger.ErrPageBytes.
func (p *Pages) small(ctx context.Context, q Query) (*Page, error) {
	share, err := p.chunks.Take(ctx, factor*Chunk)
	if err != nil {
		return nil, err
	}
	q.In.Bytes = Chunk
	if q.Bytes > 0 {
		q.In.Bytes = min(Chunk, q.Bytes)
	}
	entries, err := p.store.Before(ctx, q.In, q.Before, q.N)
	if err != nil {
		share.Release()
		return nil, err
	}
	page := &Page{of: p, read: entries, share: share}
	if len(entries) >= q.N {
		page.Next = entries[len(entries)-1].ID
	}
	if q.OldestFirst {
		slices.Reverse(entries)
	}
	share.Keep(factor * page.size())
	return page, nil
}

// OpenList is Open for the messages of a list, in its order.
func (p *Pages) OpenList(ctx context.Context, list []ledger.Heading) (*Page, error) {
	page := &Page{of: p, left: list}
	return page, page.begin(ctx)
}

// Hold waits for room for a message that is in memory already, and is to be shown.
// The error is that of ctx, or ErrFull.
func (p *Pages) Hold(ctx context.Context, size int) (*Share, error) { return p.take(ctx, size) }

// Memory is how much a share for messages of so many bytes is.
func Memory(size int) int64 { return factor * int64(size) }

// take takes a share for messages of so many bytes.
func (p *Pages) take(ctx context.Context, size int) (*Share, error) {
	if size <= Chunk {
		return p.chunks.Take(ctx, factor*int64(size))
	}
	return p.large.Take(ctx, factor*int64(size))
}

// Page is a page of messages, of which no more than a chunk is in memory. It is for
// one goroutine.
type Page struct {
	// Next is the oldest message of the page if there may be older ones; 0 = there are
	// none. It is of no meaning for a list.
	Next ledger.MessageID

	of    *Pages
	read  []ledger.Entry   // and not shown yet
	left  []ledger.Heading // what comes behind it
	share *Share           // for what is read
}

func (p *Page) size() int64 {
	size := 0
	for i := range p.read {
		size += p.read[i].Size()
	}
	return int64(size)
}

// begin reads the first chunk, of a page that has one.
func (p *Page) begin(ctx context.Context) error {
	if len(p.left) == 0 {
		return nil
	}
	err := p.more(ctx)
	if err != nil {
		p.Close()
	}
	return err
}

// more reads the next chunk. Nothing is held while it waits for room.
func (p *Page) more(ctx context.Context) (err error) {
	p.Close()
	n := ledger.Fitting(p.left, Chunk)
	ids, size := make([]ledger.MessageID, n), 0
	for i, h := range p.left[:n] {
		ids[i] = h.ID
		size += h.Size
	}
	if p.share, err = p.of.take(ctx, size); err != nil {
		return err
	}
	p.read, err = p.of.store.Entries(ctx, ids)
	p.left = p.left[n:]
	return err
}

// Each calls show for each message of the page, in its order. Before the messages of a
// chunk it calls begin, unless it is nil, with how many bytes they hold: show must be
// done with them within Patience of it, since others wait for their room. The error is
// ErrFull if there was no room for the next chunk: then what was not shown yet is
// Left, and Each may be called again.
func (p *Page) Each(ctx context.Context, begin func(bytes int64), show func(*ledger.Entry) error) error {
	for {
		if begin != nil && len(p.read) > 0 {
			begin(p.size())
		}
		for i := range p.read {
			if err := show(&p.read[i]); err != nil {
				return err
			}
			p.read[i] = ledger.Entry{}
		}
		if len(p.left) == 0 {
			return nil
		}
		if err := p.more(ctx); err != nil {
			return err
		}
	}
}

// Left is what was not shown yet when Each returned ErrFull.
func (p *Page) Left() []ledger.Heading { return p.left }

// Close gives back the room of what is read. It may be called more than once.
func (p *Page) Close() {
	p.share.Release()
	p.read, p.share = nil, nil
}

// What is held for a reader who takes it slower than this is not held any longer: a
// minute, and one more second for so many bytes of messages.
const slowest = 64 << 10

// Patience is how long it may take to show so many bytes of messages.
func Patience(bytes int64) time.Duration {
	return time.Minute + time.Duration(bytes/slowest)*time.Second
}
