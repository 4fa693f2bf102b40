package sqlite

import (
	"runtime"
	"sync/atomic"
	"time"
)

// While messages are stored, who reads many rests for yield after each piece: on
// two processors a reader that never rests takes one of them, and what it reads
// would cost each message more than storing it does.
const (
	rowsAtOnce = 8                    // read from the disk before others may go first
	calm       = 2 * time.Millisecond // without a commit: nobody is held up
	yield      = time.Millisecond
)

// pulse is when the writer last stored something, and how much it did so far.
type pulse struct {
	at    atomic.Int64 // since the program began
	units atomic.Int64
}

var began = time.Now()

func (p *pulse) beat(units int) {
	p.at.Store(int64(time.Since(began)))
	p.units.Add(int64(units))
}

func (p *pulse) busy() bool { return time.Since(began)-time.Duration(p.at.Load()) < calm }

// GiveWay lets those go first who store messages. Who reads or shows many
// messages calls it now and then, and holds no lock.
func (s *Store) GiveWay() {
	if s.w.pulse.busy() {
		time.Sleep(yield)
		return
	}
	runtime.Gosched()
}
