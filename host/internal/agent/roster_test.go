package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

// made is an agent of the test's kind: it keeps its config, and what it is told.
type made struct {
	config string
	told   []string
}

func (m *made) Handle(context.Context, hub.Turn, hub.Reply) error { return nil }
func (m *made) Close() error                                      { m.told = append(m.told, "closed"); return nil }
func (m *made) Revoke(key int64)                                  { m.told = append(m.told, fmt.Sprintf("revoke %d", key)) }
func (m *made) Expire(but int64, at time.Time) {
	m.told = append(m.told, fmt.Sprintf("expire but %d %d", but, at.Unix()))
}

var _ Keyed = (*made)(nil)

// lines is a log that is read back.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// roster makes a roster with the kinds "echo" and "test", over a new database.
func roster(t *testing.T) (*Roster, *sqlite.Store, *lines) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), blank.Dir(t, t.TempDir()), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	log := &lines{}
	r := NewRoster(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(r.Close)
	r.Register("echo", Kind{Make: func(ledger.Agent) (hub.Agent, error) { return &Echo{}, nil }})
	r.Register("test", Kind{
		Check: func(config json.RawMessage) error {
			var c struct {
				Say string `json:"say"`
			}
			return Decode(config, &c)
		},
		Make: func(row ledger.Agent) (hub.Agent, error) {
			switch string(row.Config) {
			case `{"say":"panic"}`:
				panic("at once")
			case `{"say":"fail"}`:
				return nil, errors.New("no luck")
			}
			return &made{config: string(row.Config)}, nil
		},
	})
	return r, st, log
}

func add(t *testing.T, st *sqlite.Store, name, kind, config string, enabled bool) ledger.Agent {
	t.Helper()
	row, err := st.CreateAgent(t.Context(), ledger.Agent{ID: "id-" + name, Name: name, Kind: kind, Config: json.RawMessage(config), Enabled: enabled},
		nil, ledger.Change{Actor: "test", Action: "agent.create"})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// Whatever is wrong with one row, the others are there, and it is away.
func TestLoad(t *testing.T) {
	r, st, log := roster(t)
	add(t, st, "good", "test", `{"say":"hi"}`, true)
	for name, row := range map[string][2]string{
		"unknown": {"martian", `{}`}, "refused": {"test", `{"sya":"hi"}`}, "panics": {"test", `{"say":"panic"}`},
		"fails": {"test", `{"say":"fail"}`}, "broken": {"test", `[]`},
	} {
		add(t, st, name, row[0], row[1], true)
	}
	add(t, st, "off", "test", `{}`, false)
	if err := r.Load(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if want := []string{"broken", "echo", "fails", "good", "off", "panics", "refused", "unknown"}; !slices.Equal(r.Names(), want) {
		t.Errorf("names are %v, want %v", r.Names(), want)
	}
	if a, _ := r.Agent("echo"); a.(*Echo) == nil {
		t.Error("echo is not built in")
	}
	if a, _ := r.Agent("good"); a.(*made).config != `{"say":"hi"}` {
		t.Errorf("good is %+v", a)
	}
	for _, name := range []string{"unknown", "refused", "panics", "fails", "broken", "off"} {
		a, ok := r.Agent(name)
		if !ok || !errors.Is(a.Handle(t.Context(), hub.Turn{}, nil), hub.ErrAway) {
			t.Errorf("%s is %v, %v, want one that is away", name, a, ok)
		}
		if logged := strings.Contains(log.all.String(), "agent="+name); logged != (name != "off") {
			t.Errorf("%s: logged is %v", name, logged)
		}
	}
	if _, ok := r.Agent("nobody"); ok {
		t.Error("nobody is an agent")
	}
}

// Changes of rows count at once, and end the agents that were there before.
func TestSet(t *testing.T) {
	r, st, _ := roster(t)
	if err := r.Load(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	row := add(t, st, "one", "test", `{"say":"a"}`, true)
	r.Set(row)
	found := func(name string) *made {
		t.Helper()
		a, ok := r.Agent(name)
		if !ok {
			t.Fatalf("%s is not there", name)
		}
		m, _ := a.(*made)
		return m
	}
	first := found("one")
	if r.Set(row); found("one") != first {
		t.Error("what did not change was made again")
	}
	r.Revoke(row.Key, 7)
	r.Expire(row.Key, 8, time.Unix(9, 0))
	r.Revoke(row.Key+1, 7) // nobody's

	row.Config = json.RawMessage(`{"say":"b"}`)
	if r.Set(row); found("one").config != `{"say":"b"}` {
		t.Error("the changed config does not count")
	}
	if want := []string{"revoke 7", "expire but 8 9", "closed"}; !slices.Equal(first.told, want) {
		t.Errorf("the first one was told %v, want %v", first.told, want)
	}
	second := found("one")
	row.Enabled = false
	if r.Set(row); found("one") != nil || !slices.Equal(second.told, []string{"closed"}) {
		t.Errorf("disabled: %v, told %v", found("one"), second.told)
	}
	row.Enabled, row.Name = true, "two"
	r.Set(row)
	if _, ok := r.Agent("one"); ok || found("two") == nil {
		t.Error("the new name does not count")
	}
	r.Remove(row.Key)
	if !slices.Equal(r.Names(), []string{"echo"}) {
		t.Errorf("removed, the names are %v", r.Names())
	}
}

// Agents are found while others change.
func TestRosterRace(t *testing.T) {
	r, st, _ := roster(t)
	row := add(t, st, "one", "test", `{"say":"a"}`, true)
	r.Set(row)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for n := range 200 {
				changed := row
				changed.Config = fmt.Appendf(nil, `{"say":"%d-%d"}`, i, n)
				r.Set(changed)
			}
		})
		wg.Go(func() {
			for range 2000 {
				if _, ok := r.Agent("one"); !ok || len(r.Names()) != 1 {
					t.Error("an agent was not found while it changed")
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestCheck(t *testing.T) {
	r, _, _ := roster(t)
	for _, c := range []struct{ name, kind, config, want string }{
		{"ok", "test", `{"say":"x"}`, ""},
		{"okEmpty", "echo", `{}`, ""},
		{"errKind", "martian", `{}`, "expected echo, test"},
		{"errNone", "echo", `{"say":"x"}`, `"say": unknown field`},
		{"errField", "test", `{"what":"x"}`, `unknown field "what"`},
		{"errType", "test", `{"say":4711}`, "say: found a number, expected a string"},
		{"errForm", "test", `"x"`, "expected one"},
		{"errNull", "test", `null`, "expected one"},
		{"errMore", "test", `{} {}`, "expected one"},
		{"errLarge", "test", `{"say":"` + strings.Repeat("x", MaxConfig) + `"}`, "expected at most 65536"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := r.Check(ledger.Agent{Kind: c.kind, Config: json.RawMessage(c.config)})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "4711")):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
