package bench

import (
	"errors"
	"net"
	"sync"
	"time"
)

// paced sends at the stage's pace, however slow the answers are, and returns
// when all are answered. Latency counts from when a message was due.
func (p *peer) paced(st *stage, quota int) error {
	first := st.began + st.interval*time.Duration(p.template.conn)/time.Duration(st.peers)
	var wg sync.WaitGroup
	var sendErr error
	wg.Go(func() {
		sendErr = p.pace(st, first, quota)
		p.done.Store(true)
		if p.in.Load() >= p.out.Load() { // the reader may wait already, for nothing
			_ = p.conn.SetReadDeadline(time.Now())
		}
	})
	err := p.listen(st, first)
	if err != nil {
		_ = p.conn.Close() // frees a writer that waits
	}
	wg.Wait()
	p.sent = int(p.out.Load())
	var timeout net.Error
	if p.open() <= 0 && errors.As(err, &timeout) && timeout.Timeout() {
		err = nil
	}
	if err == nil {
		err = sendErr
	}
	return err
}

// pace writes what is due.
func (p *peer) pace(st *stage, first time.Duration, quota int) error {
	var batch []byte
	for seq := 0; !st.over() && (quota == 0 || seq < quota); {
		batch = batch[:0]
		for n := 0; n < openBatch && first+st.interval*time.Duration(seq) <= now() && (quota == 0 || seq < quota); n++ {
			batch = append(batch, p.message(seq)...)
			seq++
		}
		if len(batch) == 0 {
			time.Sleep(min(first+st.interval*time.Duration(seq)-now(), 20*time.Millisecond))
			continue
		}
		p.out.Store(int64(seq)) // first, so that no answer comes before it
		if _, err := p.conn.Conn.Write(batch); err != nil {
			return err
		}
	}
	return nil
}

// listen reads until everything is answered that was or will be sent.
func (p *peer) listen(st *stage, first time.Duration) error {
	for !p.done.Load() || p.in.Load() < p.out.Load() {
		seq, err := p.take(st)
		if err != nil {
			return err
		}
		p.in.Store(int64(p.answered + p.refused))
		if seq >= 0 && st.measuring() {
			p.counted++
			p.latency.add(now() - first - st.interval*time.Duration(seq))
		}
	}
	return nil
}
