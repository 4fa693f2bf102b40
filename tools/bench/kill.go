package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // looks at the database of a host that was killed
)

// databaseFile is what the host calls its database.
const databaseFile = "pontoon.db"

// The kill comes at a random moment within these bounds after the burst began,
// and in every second round another one that soon after a start.
const (
	killEarliest = 20 * time.Millisecond
	killLatest   = 600 * time.Millisecond
	startKill    = 60 * time.Millisecond
)

// KillConfig is what Kill runs. Zero values of the burst's shape are defaults.
type KillConfig struct {
	Exe           string
	Dir           string // where the host's data directory is made; "" = the system's
	Rounds        int
	Conns         int // 8
	Window        int // 32
	Conversations int // of each connection; 3
	Size          int // bytes of a frame; 200
	Ahead         int // of adapters that acknowledge: messages of a conversation that they take before; 0 = one
	Progress      Progress
}

func (c *KillConfig) defaults() error {
	for _, v := range []struct {
		at *int
		n  int
	}{{&c.Conns, 8}, {&c.Window, 32}, {&c.Conversations, 3}, {&c.Size, 200}} {
		if *v.at == 0 {
			*v.at = v.n
		}
	}
	if c.Rounds < 1 || c.Rounds > maxRounds {
		return fmt.Errorf("rounds: found %d, expected 1 to %d", c.Rounds, maxRounds)
	}
	if c.Ahead < 0 || c.Ahead > maxAcks {
		return fmt.Errorf("in flight: found %d, expected 0 to %d", c.Ahead, maxAcks)
	}
	s := c.scenario()
	s.Acks = 0 // a keeper makes frames of its own
	return s.validate()
}

func (c *KillConfig) scenario() Scenario {
	return Scenario{Conns: c.Conns, Window: c.Window, Conversations: c.Conversations, Size: c.Size, Acks: c.Ahead}
}

// burst is what the clients of one round remember.
type burst struct {
	prefix string // of its channels' names
	peers  []*peer
}

// torture is one data directory that is killed again and again.
type torture struct {
	KillConfig
	dir    string
	kills  int
	bursts []burst
}

// Kill sends bursts of messages from several connections, kills the host with
// SIGKILL at a random moment, starts it again on the same data and compares
// history with what the clients saw. An answer that arrived acknowledges its
// question: both were committed before. The report's data directory is kept if
// the report is not OK, else removed.
func Kill(ctx context.Context, c KillConfig) (r KillReport, err error) {
	if err := c.defaults(); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(c.Dir, "pontoon-kill-")
	if err != nil {
		return r, fmt.Errorf("make data directory: %w", err)
	}
	defer func() {
		if err != nil || r.OK() {
			_ = os.RemoveAll(dir)
		}
	}()
	t := &torture{KillConfig: c, dir: dir}
	for round := range c.Rounds {
		early, err := t.round(ctx, round)
		if err != nil {
			return KillReport{}, fmt.Errorf("round %d: %w", round+1, err)
		}
		if !early.clean() {
			return t.conclude(early), nil
		}
	}
	return t.final(ctx)
}

// conclude fills in what the report says of the run itself.
func (t *torture) conclude(r KillReport) KillReport {
	r.Machine, r.Rounds, r.Kills = DescribeMachine(t.dir), len(t.bursts), t.kills
	return r
}

// round starts the host, compares the burst before, and kills the next one.
func (t *torture) round(ctx context.Context, round int) (KillReport, error) {
	if round%2 == 1 {
		if err := t.killStart(); err != nil {
			return KillReport{}, err
		}
	}
	host, err := startHost(ctx, t.Exe, t.dir)
	if err != nil {
		return KillReport{}, err
	}
	defer host.kill()
	r := KillReport{}
	if n := len(t.bursts); n > 0 {
		if err := t.compare(ctx, host, t.bursts[n-1:], &r); err != nil || !r.clean() {
			return r, err
		}
	}
	b := burst{prefix: fmt.Sprintf("kill-%04d", round)}
	tokens, err := provision(ctx, host, b.prefix, t.Conns)
	if err != nil {
		return r, err
	}
	b.peers, err = connectAll(ctx, target{"host", host.bridge(), tokens, 0}, t.scenario(), round)
	defer closePeers(b.peers)
	if err != nil {
		return r, err
	}
	finished, _ := runClients(b.peers, new(stage), span{}) // their errors are the kill's
	wait(ctx, finished, killEarliest+rand.N(killLatest-killEarliest))
	host.kill()
	t.kills++
	<-finished
	t.bursts = append(t.bursts, b)
	t.Progress.say(fmt.Sprintf("round %d of %d: %d answered", round+1, t.Rounds, b.answered()))
	return r, ctx.Err()
}

// killStart kills the host while it starts and mends what the kill before left.
func (t *torture) killStart() error {
	host, err := spawnHost(t.Exe, t.dir)
	if err != nil {
		return err
	}
	time.Sleep(rand.N(startKill))
	host.kill()
	t.kills++
	return nil
}

// final compares every burst once more, and looks at the file of a host that
// stopped in order.
func (t *torture) final(ctx context.Context) (KillReport, error) {
	host, err := startHost(ctx, t.Exe, t.dir)
	if err != nil {
		return KillReport{}, err
	}
	defer host.stop()
	r := KillReport{}
	if err := t.compare(ctx, host, t.bursts, &r); err != nil {
		return KillReport{}, err
	}
	host.stop()
	if err := r.checkFile(ctx, t.dir, "rw"); err != nil {
		return KillReport{}, err
	}
	return t.conclude(r), nil
}

func (b *burst) answered() (n int) {
	for _, p := range b.peers {
		n += p.answered
	}
	return n
}

// compare reads the channels of bursts and the whole file into the report.
func (t *torture) compare(ctx context.Context, host *child, bursts []burst, r *KillReport) error {
	api, err := host.rest()
	if err != nil {
		return err
	}
	defer api.close()
	for _, b := range bursts {
		for i, p := range b.peers {
			var log history
			if err := api.history(ctx, channelName(b.prefix, i), func(e entry) { log = append(log, e) }); err != nil {
				return err
			}
			r.judge(p, log)
		}
	}
	return r.checkFile(ctx, t.dir, "ro")
}

// checkFile has SQLite look at the whole file, beside a running host (ro) or
// after it (rw, since nobody else can put a log in order then, and then also at
// what each index says: in every round that would take most of the time).
func (r *KillReport) checkFile(ctx context.Context, dir, mode string) (err error) {
	path, err := filepath.Abs(filepath.Join(dir, databaseFile))
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	check := "PRAGMA quick_check"
	if mode == "rw" {
		check = "PRAGMA integrity_check"
	}
	var first string // "ok", or the first thing wrong
	if err := db.QueryRowContext(ctx, check).Scan(&first); err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	if r.Integrity == "" || r.Integrity == integrityOK {
		r.Integrity = first
	}
	return nil
}
