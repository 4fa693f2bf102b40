package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// openEvents measures adapters at a steady pace with readers of the event stream, and
// without: the difference is what the readers cost.
func openEvents(ctx context.Context, b *httpBed, s Scenario) ([]way, error) {
	host, err := b.adapters(ctx, "bench", "echo", s.Conns)
	if err != nil {
		return nil, err
	}
	var p readerCost
	return []way{
		{"read", func(ctx context.Context, _ int) (Sample, error) {
			all, err := followAll(ctx, b.host.url, b.api.key, s.Readers)
			defer all.close()
			if err != nil {
				return Sample{}, err
			}
			before := usageOf(host.pid)
			one, err := measure(ctx, host, s, b.run(), b.span())
			if err != nil {
				return one, err
			}
			shown, err := all.compare(ctx, &one)
			if after := usageOf(host.pid); after.known {
				one.ReaderCPU = p.read(cost{after.server - before.server, one.Answered}, shown)
			}
			return one, err
		}},
		{"unread", func(ctx context.Context, _ int) (Sample, error) {
			before := usageOf(host.pid)
			one, err := measure(ctx, host, s, b.run(), b.span())
			if after := usageOf(host.pid); after.known {
				p.unread(cost{after.server - before.server, one.Answered})
			}
			return one, err
		}},
	}, nil
}

// cost is the processor time that messages took, warm-up and all: readers may be far
// behind what is answered when a measurement ends, and what they still read counts.
type cost struct {
	took     time.Duration
	messages int
}

// readerCost tells what readers cost once a round has both of its measurements, whichever
// was first.
type readerCost struct {
	with, without cost     // zero = not measured yet
	shown         int      // events, over all readers
	figure        *float64 // of the round, filled in when both are there
}

// read returns the figure, in µs of an event for a reader.
func (p *readerCost) read(with cost, shown int) *float64 {
	p.with, p.shown, p.figure = with, shown, new(float64)
	figure := p.figure
	p.join()
	return figure
}

func (p *readerCost) unread(without cost) {
	p.without = without
	p.join()
}

func (p *readerCost) join() {
	if p.with.messages == 0 || p.without.messages == 0 || p.shown == 0 {
		return
	}
	alone := float64(p.without.took) / float64(p.without.messages) * float64(p.with.messages)
	*p.figure = (float64(p.with.took) - alone) / float64(p.shown) / float64(time.Microsecond)
	*p = readerCost{}
}

// follower reads the event stream.
type follower struct {
	conn net.Conn
	came atomic.Int64 // events, message.created alone

	// Its own goroutine alone touches these until ended is closed.
	newest     string // id
	disordered int    // ids that came behind a later one, or twice
	gaps       int    // the host says that it left something out
	all        int    // events of any kind
	ended      chan struct{}
}

// followers are all readers of one measurement.
type followers []*follower

// followAll opens streams, each of which has begun. close must be called, also after an error.
func followAll(ctx context.Context, url, key string, n int) (followers, error) {
	all := make(followers, n)
	err := each(n, dialers, func(i int) (err error) {
		all[i], err = newFollower(ctx, url, key)
		return err
	})
	return all, err
}

func (f followers) close() {
	for _, one := range f {
		if one != nil {
			_ = one.conn.Close()
			<-one.ended
		}
	}
}

func newFollower(ctx context.Context, url, key string) (*follower, error) {
	address := strings.TrimPrefix(url, "http://")
	dialer := net.Dialer{Control: loopbackOnly, Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	begun := make(chan error, 1)
	f := &follower{conn: conn, ended: make(chan struct{})}
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", address, key)
	go func() { // close waits for it
		defer close(f.ended)
		f.read(begun)
	}()
	if err := <-begun; err != nil {
		_ = conn.Close()
		<-f.ended
		return nil, err
	}
	return f, conn.SetDeadline(time.Time{})
}

// The fields of an event of which a reader takes note.
var (
	fieldID    = []byte("id: ")
	fieldEvent = []byte("event: ")
	eventGap   = []byte("event: gap")
	firstLine  = []byte(": pontoon")
)

// read reads until the connection ends; begun is told that the stream has begun, or
// why not.
func (f *follower) read(begun chan<- error) {
	resp, err := http.ReadResponse(bufio.NewReaderSize(f.conn, 32<<10), nil)
	if err != nil {
		begun <- fmt.Errorf("open events: %w", err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		begun <- fmt.Errorf("open events: answered %s", resp.Status)
		return
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 32<<10), 1<<20)
	for lines.Scan() {
		switch line := lines.Bytes(); {
		case bytes.HasPrefix(line, firstLine):
			begun <- nil
		case bytes.HasPrefix(line, fieldID):
			f.note(line[len(fieldID):])
		case bytes.Equal(line, eventGap):
			f.gaps++
		case bytes.HasPrefix(line, fieldEvent):
			f.all++
		}
	}
	select {
	case begun <- errors.New("open events: the stream ended before it began"):
	default: // it had begun; what is missing is counted
	}
}

// note counts a message.created; ids grow.
func (f *follower) note(id []byte) {
	if string(id) <= f.newest {
		f.disordered++
	} else {
		f.newest = string(id)
	}
	f.came.Add(1)
}

// perMessage is how many messages are created for one that is echoed: it, and its answer.
const perMessage = 2

// compare waits until every reader has what was created, closes all, and counts what
// readers missed or had twice. It returns how many events of any kind they had together.
func (f followers) compare(ctx context.Context, s *Sample) (shown int, err error) {
	want := perMessage * s.Answered
	late := time.Now().Add(grace)
	for _, one := range f {
		for int(one.came.Load()) < want && time.Now().Before(late) && ctx.Err() == nil {
			time.Sleep(time.Millisecond) // between two looks
		}
	}
	f.close()
	for i, one := range f {
		came := int(one.came.Load())
		s.Lost, s.Stray = s.Lost+max(0, want-came), s.Stray+max(0, came-want)
		s.Disordered += one.disordered
		shown += one.all
		if s.Refusal == "" && (came != want || one.gaps > 0 || one.disordered > 0) {
			s.Refusal = fmt.Sprintf("reader %d: %d of %d events, %d gaps, %d out of order", i, came, want, one.gaps, one.disordered)
		}
	}
	return shown, ctx.Err()
}
