package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

func (m *queueModel) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// check says whether something has happened that must not.
func (m *queueModel) check(t modelTest) {
	m.rest()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) > 0 {
		t.Fatal(strings.Join(m.faults, "\n"))
	}
}

// rest looks whether all is as it should be while nobody waits for the disk.
func (m *queueModel) rest() {
	calm := m.gate.calm()
	m.mu.Lock()
	defer m.mu.Unlock()
	// One that is refused or retired is about to end, and what is written to one who does
	// not acknowledge does not expire.
	if !calm || m.far != nil && (m.far.refused || m.far.retired || !m.far.acks && m.far.crowded) {
		m.trouble = time.Now()
	}
	since := time.Since(m.trouble)
	if since < 2*time.Second { // what was refused is begun again each second
		return
	}
	waiting := 0
	late := min(10*time.Second, m.ttl()/4) + 2*time.Second
	for name, s := range m.sent {
		if s.state != ledger.Queued || s.id == 0 {
			continue
		}
		waiting++
		if since > late && time.Since(s.born) > m.ttl()+late {
			m.fault("%s waits still after %s", name, time.Since(s.born))
		}
	}
	if m.far != nil {
		if a, _ := m.hub.Attached(m.row.Key); a.Queue != waiting {
			m.fault("%d wait, and the host says %d", waiting, a.Queue)
		}
	}
}

func (m *queueModel) ttl() time.Duration {
	if m.row.Limits.TTLSeconds == 0 {
		return delivery.DefaultTTL
	}
	return time.Duration(m.row.Limits.TTLSeconds) * time.Second
}

func final(s ledger.State) bool {
	return s == ledger.Delivered || s == ledger.Failed || s == ledger.Expired
}

// committed takes note of what is on the disk.
func (m *queueModel) committed(u *ledger.Unit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range u.Out {
		r := &u.Out[i]
		name, _, _ := strings.Cut(r.Text, " ")
		if n := m.queued(); r.State == ledger.Queued && m.row.Limits.Length > 0 && n >= m.row.Limits.Length && !m.back {
			m.fault("%s is queued, though %d were", name, n)
		}
		s := m.sent[name]
		s.id, s.state, s.flies, s.born = r.ID, r.State, r.Tracked, time.Now()
		m.names[r.ID] = name
	}
	for _, t := range u.Settle {
		name := m.names[t.ID]
		s := m.sent[name]
		if final(s.state) {
			m.fault("%s becomes %s, and is %s", name, t.State, s.state)
		}
		switch t.State {
		case ledger.Queued:
			m.back = true
		case ledger.Expired:
			if age := time.Since(s.born); s.ended != "" || age < m.ttl() {
				m.fault("%s expires after %s, expected %q", name, age, s.ended)
			}
			s.ended = string(t.Reason)
		}
		s.state, s.flies = t.State, t.Tracked
	}
}

// queued is how many wait, on the disk. The mutex must be held.
func (m *queueModel) queued() (n int) {
	for _, s := range m.sent {
		if s.id != 0 && s.state == ledger.Queued {
			n++
		}
	}
	return n
}

// returned notes what Send returned.
func (m *queueModel) returned(name string, err error) {
	_, untold := m.gate.count()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sent[name]
	s.back, s.err = true, err
	if !errors.Is(err, hub.ErrQueueFull) || untold > 0 {
		return
	}
	open := 0
	for _, o := range m.sent {
		if o.ended == "" && (o.err == nil || o.id != 0) && !final(o.state) && o != s {
			open++
		}
	}
	if open < m.row.Limits.Length || m.row.Limits.Length == 0 {
		m.fault("%s was refused, though only %d are open", name, open)
	}
}

// shown notes that a user sees a message. The mutex must be held.
func (m *queueModel) shown(f *far, name string) {
	s := m.sent[name]
	conv := fmt.Sprint(s.conv)
	if s.id == 0 {
		m.fault("%s was shown, and is not on the disk", name)
	}
	if last, any := f.newest[conv]; any && last >= s.n {
		m.fault("%s was shown at %s behind %s.%d", name, f, conv, last)
	}
	f.newest[conv] = s.n
	if !s.shown && m.newest[s.conv] > s.n {
		m.fault("%s was shown first behind %s.%d", name, conv, m.newest[s.conv])
	}
	s.shown = true
	m.newest[s.conv] = max(m.newest[s.conv], s.n)
}

// heard notes what the host hears of a message in flight. The mutex must be held.
func (m *queueModel) heard(f *far, v verdict) {
	s := m.sent[v.name]
	conv := fmt.Sprint(s.conv)
	switch {
	case v.kind == notNow:
		s.refusals++
		if s.refusals >= modelAttempts {
			s.ended = string(ledger.ReasonRetriesExhausted)
		}
		m.moment++
		f.refusal[conv] = m.moment
		delete(f.out, conv) // what left behind it is not taken either
		return
	case v.kind == never:
		s.ended = string(ledger.ReasonRejected)
	case v.kind == uncertain:
		s.ended = string(ledger.ReasonUnknownOutcome)
	case v.last:
		s.ended = ledger.Delivered.String()
	default:
		return
	}
	delete(f.out[conv], v.name)
}

// compare says whether what became of each message is what should have.
func (m *queueModel) compare(t modelTest) {
	all, err := m.store.Before(t.Context(), ledger.Scope{Channel: m.row.Key}, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[string]bool{}
	for i := range all {
		e := &all[i]
		name, _, _ := strings.Cut(e.Text, " ")
		there[name] = true
		m.compareOne(e, name)
	}
	for name, s := range m.sent {
		if !s.back || there[name] != (s.id != 0) || !s.cut && there[name] != (s.err == nil) {
			m.fault("%s: sent %v, %v, stored %v", name, s.back, s.err, there[name])
		}
	}
	if a, _ := m.hub.Attached(m.row.Key); a.Queue != 0 {
		m.fault("%d wait in the end", a.Queue)
	}
	if len(m.faults) > 0 {
		t.Fatal(strings.Join(m.faults, "\n"))
	}
}

func (m *queueModel) compareOne(e *ledger.Entry, name string) {
	s := m.sent[name]
	switch {
	case e.State == ledger.Delivered:
		if s.ended != ledger.Delivered.String() {
			m.fault("%s is delivered, and not acknowledged: %q", name, s.ended)
		}
	case e.State == ledger.Sent:
		if !s.shown && !s.lost {
			m.fault("%s is sent, and was never shown", name)
		}
	case e.State == ledger.Expired:
		if s.ended != string(ledger.ReasonTTL) {
			m.fault("%s is expired, expected %q", name, s.ended)
		}
	case e.State == ledger.Failed && e.Reason == ledger.ReasonUnknownOutcome && s.lost, // with its adapter
		e.State == ledger.Failed && e.Reason == ledger.ReasonFrameTooLarge && len(e.Text) > 1000,
		e.State == ledger.Failed && s.ended == string(e.Reason):
	default:
		m.fault("%s is %s %s in the end, expected %q", name, e.State, e.Reason, s.ended)
	}
}
