package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// ErrUnknownKind is the error of a kind that was not registered.
var ErrUnknownKind = errors.New("unknown kind")

// Roster makes the agents of the database's rows, and knows them by name. Whoever
// changes a row tells it with Set or Remove; that counts at once.
type Roster struct {
	log   *slog.Logger
	kinds map[string]Kind

	now atomic.Pointer[lineup]

	mu      sync.Mutex // one change at a time; guards members
	members map[int64]member
}

// member is a row with its agent.
type member struct {
	row   ledger.Agent
	agent hub.Agent
}

// lineup is who may be asked; it never changes.
type lineup struct {
	agents map[string]hub.Agent
	names  []string
}

var _ hub.Roster = (*Roster)(nil)

// NewRoster makes a roster without agents. Close must be called.
func NewRoster(log *slog.Logger) *Roster {
	r := &Roster{log: log, kinds: map[string]Kind{}, members: map[int64]member{}}
	r.now.Store(&lineup{})
	return r
}

// Register adds a kind, before Load. A name that is there already is a
// programming error.
func (r *Roster) Register(name string, k Kind) {
	if _, ok := r.kinds[name]; ok {
		panic("agent: kind " + name + " is registered twice")
	}
	r.kinds[name] = k
}

// Kind finds a kind.
func (r *Roster) Kind(name string) (Kind, bool) {
	k, ok := r.kinds[name]
	return k, ok
}

// Kinds lists the kinds' names, sorted.
func (r *Roster) Kinds() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// Secret tells whether a field of a config is a secret. Of a kind that nobody
// knows any more, everything may be one.
func (r *Roster) Secret(kind, field string) bool {
	k, known := r.kinds[kind]
	return !known || slices.Contains(k.Secrets, field)
}

// Check says what is wrong with an agent that is about to be stored. The error
// names the config's field, or is ErrUnknownKind.
func (r *Roster) Check(row ledger.Agent) error {
	k, ok := r.kinds[row.Kind]
	if !ok {
		return fmt.Errorf("%w: found %.80q, expected %s", ErrUnknownKind, row.Kind, strings.Join(r.Kinds(), ", "))
	}
	return k.check(row.Config)
}

// loadPage is how many rows Load reads at a time.
const loadPage = 500

// Load makes the agents of all rows. One that can't be made is away.
func (r *Roster) Load(ctx context.Context, st Ledger) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for after := int64(0); ; {
		rows, err := st.Agents(ctx, after, loadPage)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.Key
			made := r.make(row)
			if a, ok := made.(Returning); ok {
				a.Expect()
			}
			r.members[row.Key] = member{row, made}
		}
		if len(rows) < loadPage {
			r.now.Store(lineupOf(r.members))
			return nil
		}
	}
}

// Set makes a new or changed row count.
func (r *Roster) Set(row ledger.Agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.members[row.Key]
	if before.agent != nil && before.row.Name == row.Name && before.row.Kind == row.Kind &&
		before.row.Enabled == row.Enabled && string(before.row.Config) == string(row.Config) {
		return
	}
	r.members[row.Key] = member{row, r.make(row)}
	r.now.Store(lineupOf(r.members))
	r.end(before)
}

// Remove forgets a row that was deleted.
func (r *Roster) Remove(key int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.members[key]
	delete(r.members, key)
	r.now.Store(lineupOf(r.members))
	r.end(before)
}

// Close ends all agents. The hub must be closed before.
func (r *Roster) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.members
	r.members = map[int64]member{}
	r.now.Store(lineupOf(r.members))
	for _, m := range all {
		r.end(m)
	}
}

// Agent implements hub.Roster.
func (r *Roster) Agent(name string) (hub.Agent, bool) {
	a, ok := r.now.Load().agents[name]
	return a, ok
}

// Names implements hub.Roster.
func (r *Roster) Names() []string { return r.now.Load().names }

// Revoke tells the agent that one of its keys was revoked.
func (r *Roster) Revoke(agent, key int64) {
	if k := r.keyed(agent); k != nil {
		k.Revoke(key)
	}
}

// Expire tells the agent that all of its keys but one end at a time.
func (r *Roster) Expire(agent, but int64, at time.Time) {
	if k := r.keyed(agent); k != nil {
		k.Expire(but, at)
	}
}

func (r *Roster) keyed(agent int64) Keyed {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, _ := r.members[agent].agent.(Keyed)
	return k
}

// lineupOf is the members as they are found by their names.
func lineupOf(members map[int64]member) *lineup {
	l := &lineup{agents: make(map[string]hub.Agent, len(members))}
	for _, m := range members {
		l.agents[m.row.Name] = m.agent
	}
	l.names = slices.Sorted(maps.Keys(l.agents))
	return l
}

// make makes the agent of a row, or one that is away: what is wrong with one row
// must cost nothing else.
func (r *Roster) make(row ledger.Agent) (made hub.Agent) {
	if !row.Enabled {
		return absent("it is disabled")
	}
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("agent not made: its kind panicked", "agent", row.Name, "kind", row.Kind, "error", fmt.Sprintf("%v\n%s", p, debug.Stack()))
			made = absent("it could not be made")
		}
	}()
	err := row.Fault
	if err == nil {
		err = r.Check(row)
	}
	if err == nil {
		made, err = r.kinds[row.Kind].Make(row)
	}
	if err != nil {
		r.log.Error("agent not made: it is away until its row is mended", "agent", row.Name, "kind", row.Kind, "error", err)
		return absent("it could not be made")
	}
	return made
}

// end closes what a member's agent holds.
func (r *Roster) end(m member) {
	c, ok := m.agent.(io.Closer)
	if !ok {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("agent not closed: its kind panicked", "agent", m.row.Name, "kind", m.row.Kind, "error", fmt.Sprintf("%v\n%s", p, debug.Stack()))
		}
	}()
	if err := c.Close(); err != nil {
		r.log.Warn("agent not closed cleanly", "agent", m.row.Name, "kind", m.row.Kind, "error", err)
	}
}
