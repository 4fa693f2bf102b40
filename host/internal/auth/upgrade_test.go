package auth

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/schema"
)

// old is a credential of a database that has a table for each kind.
type old struct {
	table, secret          string
	id, owner              int64
	expires, revoked, used int64 // milliseconds; 0 = NULL
}

// Each credential of an older database opens exactly what it opened, and is shown
// as it was.
func TestUpgradeOfCredentials(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	future, past := now.Add(time.Hour).UnixMilli(), now.Add(-time.Hour).UnixMilli()
	all := []old{
		{"token", "token of channel 1", 3, 1, 0, 0, past},
		{"token", "overlapping token of channel 1", 4, 1, future, 0, 0},
		{"token", "expired token of channel 1", 5, 1, past, 0, past},
		{"token", "revoked token of channel 1", 6, 1, 0, past, past},
		{"token", "token of channel 2", 7, 2, 0, 0, 0},
		{"token", "token of a disabled channel", 8, 3, 0, 0, 0},
		{"token", "brought for both", 9, 2, 0, 0, 0},
		{"agent_key", "key of agent 2", 3, 2, 0, 0, past},
		{"agent_key", "expired key of agent 2", 4, 2, past, 0, 0},
		{"agent_key", "revoked key of agent 2", 5, 2, future, past, 0},
		{"agent_key", "key of a disabled agent", 6, 3, 0, 0, 0},
		{"agent_key", "brought for both", 7, 2, 0, 0, 0},
		{"api_key", "live API key", 3, 0, future, 0, past},
		{"api_key", "expired API key", 4, 0, past, 0, 0},
		{"api_key", "revoked API key", 5, 0, 0, past, past},
	}
	dir := t.TempDir()
	older(t, filepath.Join(dir, sqlite.File), all, past)

	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	g := NewGate(s, func() time.Time { return now })
	for _, o := range all {
		var owner int64
		id, err := opens(g, o.table, o.secret, &owner)
		live := o.revoked == 0 && (o.expires == 0 || o.expires > now.UnixMilli()) && o.owner != 3
		if live && (err != nil || id != o.id || owner != o.owner) || !live && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s %q: opens the %d, with id %d, %v", o.table, o.secret, owner, id, err)
		}
		for _, table := range []string{"token", "agent_key", "api_key"} {
			if table == o.table || o.secret == "brought for both" && table != "api_key" {
				continue
			}
			if id, err := opens(g, table, o.secret, &owner); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s %q opens %d as a %s: %v", o.table, o.secret, id, table, err)
			}
		}
	}
	sameRows(t, s, all)
	wantNewIDs(t, s)
}

// opens returns the id of what the secret opens as a credential of an old table.
func opens(g *Gate, table, secret string, owner *int64) (id int64, err error) {
	*owner = 0
	switch table {
	case "token":
		grant, err := g.Admit(context.Background(), secret)
		*owner = grant.Channel.Key
		return grant.Token, err
	case "agent_key":
		grant, err := g.AdmitAgent(context.Background(), secret)
		*owner = grant.Agent.Key
		return grant.Key, err
	}
	h, err := g.AdmitKey(context.Background(), secret)
	if err == nil && (h.Name != secret[:4] || !slices.Equal(h.Scopes, []string{"read", "send"}) || !slices.Equal(h.Channels, []string{"u1"})) {
		return h.ID, fmt.Errorf("its terms are %+v", h)
	}
	return h.ID, err
}

// older makes a database of schema 15 with the credentials, of which a later one of
// each kind was deleted.
func older(t *testing.T, file string, all []old, created int64) {
	t.Helper()
	d, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 15); err != nil {
		t.Fatal(err)
	}
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := d.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= 3; i++ {
		run(`INSERT INTO channel (id, uid, name, kind, enabled, agent, agents, queue, accept_capabilities, allow_users, profile, created_at)
			VALUES (?, ?, ?, 'bridge', ?, 'echo', '[]', 0, '[]', '[]', '{}', 0)`, i, fmt.Sprint("u", i), fmt.Sprint("c", i), i < 3)
	}
	for i := 2; i <= 3; i++ {
		run(`INSERT INTO agent (id, uid, name, kind, config, enabled, created_at) VALUES (?, ?, ?, 'websocket', '{}', ?, 0)`, i, fmt.Sprint("a", i), fmt.Sprint("a", i), i < 3)
	}
	orNull := func(at int64) sql.NullInt64 { return sql.NullInt64{Int64: at, Valid: at != 0} }
	for _, o := range all {
		columns, owner := map[string]string{"token": "channel", "agent_key": "agent", "api_key": "scopes, channels, name"}[o.table], any(o.owner)
		values := "?"
		if o.table == "api_key" {
			values, owner = `'["read","send"]', '["u1"]', ?`, o.secret[:4]
		}
		run(`INSERT INTO `+o.table+` (`+columns+`, id, hash, hint, created_at, expires_at, revoked_at, last_used_at) VALUES (`+values+`, ?, ?, ?, ?, ?, ?, ?)`,
			owner, o.id, Hash(o.secret), o.secret[len(o.secret)-4:], created, orNull(o.expires), orNull(o.revoked), orNull(o.used))
	}
	run(`INSERT INTO token (id, channel, hash, hint, created_at) VALUES (19, 1, x'00', '', 0); DELETE FROM token WHERE id = 19`)
	run(`INSERT INTO agent_key (id, agent, hash, hint, created_at) VALUES (29, 2, x'00', '', 0); DELETE FROM agent_key WHERE id = 29`)
	run(`INSERT INTO api_key (id, name, scopes, hash, hint, created_at) VALUES (39, 'gone', '[]', x'00', '', 0); DELETE FROM api_key WHERE id = 39`)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// sameRows compares what lists of credentials show.
func sameRows(t *testing.T, s *sqlite.Store, all []old) {
	t.Helper()
	at := func(at time.Time) int64 {
		if at.IsZero() {
			return 0
		}
		return at.UnixMilli()
	}
	var found []old
	for _, of := range []ledger.Owner{ledger.OfChannel(1), ledger.OfChannel(2), ledger.OfChannel(3), ledger.OfAgent(2), ledger.OfAgent(3), ledger.OfHost()} {
		rows, err := s.Credentials(t.Context(), of, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range rows {
			table := map[ledger.CredentialKind]string{ledger.ChannelToken: "token", ledger.AgentKey: "agent_key", ledger.APIKey: "api_key"}[c.Owner.Kind]
			i := slices.IndexFunc(all, func(o old) bool { return o.table == table && o.id == c.ID })
			if i < 0 || c.Owner != of || c.Hint != all[i].secret[len(all[i].secret)-4:] || string(c.Hash) != string(Hash(all[i].secret)) || c.CreatedAt.IsZero() {
				t.Errorf("%v has %+v", of, c)
				continue
			}
			found = append(found, old{table, all[i].secret, c.ID, c.Owner.Key, at(c.ExpiresAt), at(c.RevokedAt), at(c.LastUsedAt)})
		}
	}
	order := func(a, b old) int {
		return slices.IndexFunc(all, func(o old) bool { return o == a }) - slices.IndexFunc(all, func(o old) bool { return o == b })
	}
	slices.SortStableFunc(found, order)
	if !slices.Equal(found, all) {
		t.Errorf("found\n%+v\nexpected\n%+v", found, all)
	}
}

// wantNewIDs checks that new credentials go on behind every id that was ever given,
// and that a hash of an older one is refused for all kinds.
func wantNewIDs(t *testing.T, s *sqlite.Store) {
	t.Helper()
	for of, want := range map[ledger.Owner]int64{ledger.OfChannel(1): 20, ledger.OfAgent(2): 30, ledger.OfHost(): 40} {
		n := NewCredential("a new secret of "+string(of.Kind), time.Time{})
		if of == ledger.OfHost() {
			n.Name = "new"
		}
		if c, err := s.CreateCredential(t.Context(), of, n, change); err != nil || c.ID != want {
			t.Errorf("the next one of %v is %d, %v, expected %d", of, c.ID, err, want)
		}
		if _, err := s.CreateCredential(t.Context(), of, ledger.NewCredential{Terms: ledger.Terms{Name: n.Name}, Hash: Hash("revoked key of agent 2")}, change); !errors.Is(err, ledger.ErrTokenTaken) {
			t.Errorf("%v has the secret of another: %v", of, err)
		}
	}
	if err := s.DeleteAgent(t.Context(), ledger.Agent{Key: 2, Name: "a2", Version: 1}, change); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Credentials(t.Context(), ledger.OfAgent(2), 0, 10); err != nil || len(left) != 0 {
		t.Errorf("a deleted agent has %+v, %v", left, err)
	}
}
