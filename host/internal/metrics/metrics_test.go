package metrics

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// fixedPlugins is a host's plugins that nobody runs.
type fixedPlugins []plugin.Status

func (f fixedPlugins) List() []plugin.Status { return f }

// parts is what metrics are made of.
type parts struct {
	store    *sqlite.Store
	hub      *hub.Hub
	failures *auth.Failures
	metrics  *Metrics
}

func begin(t *testing.T) *parts {
	t.Helper()
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), blank.Dir(t, dir), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := attach.Open(dir, attach.Options{Base: func() string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	h := hub.New(hub.Options{Store: st, Attachments: files, Agents: hub.Fixed{}, Commands: command.New()})
	t.Cleanup(func() {
		h.Close()
		_ = files.Close()
		_ = st.Close()
	})
	p := &parts{store: st, hub: h, failures: new(auth.Failures)}
	p.metrics, err = New(Options{
		Store: st, Hub: h, Failures: p.failures, Attachments: files.Bytes, Log: slog.New(slog.DiscardHandler), Version: "1.2.3", Now: time.Now,
		Plugins:     fixedPlugins{{Name: "irc", State: plugin.Backoff, Restarts: 3}},
		Connections: map[string]func() int{"adapter": func() int { return 2 }},
		Backup:      func() (time.Time, bool) { return time.Unix(1000, 0), true },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *parts) channel(t *testing.T, name string) ledger.Channel {
	t.Helper()
	c, err := p.store.CreateChannel(t.Context(), ledger.Channel{ID: "id-" + name, Name: name, Kind: "bridge", Enabled: true, Agent: "none", Queue: true}, nil,
		ledger.Change{Actor: "test", Action: "channel.create"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *parts) send(t *testing.T, c ledger.Channel, text string) {
	t.Helper()
	if _, err := p.hub.Send(t.Context(), c, hub.Outgoing{Conversation: "c", Message: message.Text(text)}); err != nil {
		t.Fatal(err)
	}
}

func (p *parts) page(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	p.metrics.ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// wantLines looks for whole lines.
func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(page, "\n"+l+"\n") {
			name, _, _ := strings.Cut(l, " ")
			name, _, _ = strings.Cut(name, "{")
			found := []string{}
			for have := range strings.Lines(page) {
				if strings.HasPrefix(have, name) {
					found = append(found, have)
				}
			}
			t.Errorf("want %s, found\n%s", l, strings.Join(found, ""))
		}
	}
}

// TestLint: names and helps are as Prometheus wants them.
func TestLint(t *testing.T) {
	p := begin(t)
	p.send(t, p.channel(t, "a"), "waits")
	problems, err := testutil.GatherAndLint(p.metrics.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

func TestPage(t *testing.T) {
	p := begin(t)
	a := p.channel(t, `a`)
	gone := p.channel(t, "gone")
	p.send(t, a, "waits")
	p.send(t, gone, "waits")
	p.failures.Add(ledger.AgentKey)
	page := p.page(t)
	wantLines(t, page,
		`pontoon_messages_total{channel="a",direction="out"} 1`,
		`pontoon_messages_total{channel="a",direction="in"} 0`,
		`pontoon_message_outcomes_total{channel="a",direction="out",reason="queue_full",state="failed"} 0`,
		`pontoon_queue_messages{channel="a"} 1`,
		`pontoon_adapter_attached{channel="a"} 0`,
		`pontoon_channel_enabled{channel="a"} 1`,
		`pontoon_dead_letters{channel="a"} 0`,
		`pontoon_store_failing 0`,
		`pontoon_store_commit_seconds_count 2`,
		`pontoon_store_commit_batch_units_sum 2`,
		`pontoon_plugin_state{plugin="irc",state="backoff"} 1`,
		`pontoon_plugin_state{plugin="irc",state="running"} 0`,
		`pontoon_plugin_restarts_total{plugin="irc"} 3`,
		`pontoon_connections{kind="adapter"} 2`,
		`pontoon_auth_failures_total{credential="agent_key"} 1`,
		`pontoon_auth_failures_total{credential="login"} 0`,
		`pontoon_last_backup_timestamp_seconds 1000`,
		`pontoon_readers 4`,
		`pontoon_scrape_errors 0`,
	)
	for _, want := range []string{"\npontoon_queue_oldest_age_seconds{", "\npontoon_disk_free_bytes ", `version="1.2.3"`, "\ngo_goroutines ", "\nprocess_resident_memory_bytes "} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not there", want)
		}
	}

	// A channel that is deleted is gone from here too.
	if err := p.store.DeleteChannel(t.Context(), gone, ledger.Change{Actor: "test", Action: "channel.delete"}); err != nil {
		t.Fatal(err)
	}
	p.hub.Remove(gone.Key)
	if page := p.page(t); strings.Contains(page, `"gone"`) {
		t.Error("a deleted channel is still there")
	}
}

// TestStoreGone: what can't be read is left out and counted, the rest is shown.
func TestStoreGone(t *testing.T) {
	p := begin(t)
	p.channel(t, "a")
	if err := p.store.Close(); err != nil {
		t.Fatal(err)
	}
	wantLines(t, p.page(t), `pontoon_scrape_errors 2`, `pontoon_readers 4`)
}

func TestCount(t *testing.T) {
	p := begin(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /things/{id}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) })
	mux.HandleFunc("POST /things/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
	mux.HandleFunc("GET /defect", func(http.ResponseWriter, *http.Request) { panic("a defect") })
	mux.HandleFunc("GET /abort", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader("text"))
	})
	mux.HandleFunc("GET /upgrade", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n")
		_ = c.Close()
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("/", http.NotFound)
	srv := httptest.NewServer(p.metrics.Count(mux))
	defer srv.Close()
	for _, ask := range []string{
		"GET /things/1", "GET /things/2", "POST /things/1", "GET /defect", "GET /abort", "GET /file", "GET /upgrade", "GET /stream", "GET /nowhere", "BREW /pot",
	} {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, ask+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		_, _ = bufio.NewReader(c).ReadString(0)
		_ = c.Close()
	}
	// Who upgrades closes the connection itself, before it is counted.
	await.Until(t, "the upgrade is counted", func() bool { return strings.Contains(p.page(t), `route="/upgrade"`) })
	wantLines(t, p.page(t),
		`pontoon_http_requests_total{method="GET",route="/things/{id}",status="200"} 2`,
		`pontoon_http_requests_total{method="POST",route="/things/{id}",status="409"} 1`,
		`pontoon_http_requests_total{method="GET",route="/defect",status="500"} 1`,
		`pontoon_http_requests_total{method="GET",route="/abort",status="202"} 1`,
		`pontoon_http_requests_total{method="GET",route="/file",status="200"} 1`,
		`pontoon_http_requests_total{method="GET",route="/upgrade",status="101"} 1`,
		`pontoon_http_requests_total{method="GET",route="/stream",status="200"} 1`,
		`pontoon_http_requests_total{method="GET",route="other",status="404"} 1`,
		`pontoon_http_requests_total{method="OTHER",route="other",status="404"} 1`,
	)
}

// TestRecorder: each minute's difference is kept, and what is left at the end.
func TestRecorder(t *testing.T) {
	p := begin(t)
	a := p.channel(t, "a")
	now := time.Now().UTC().Truncate(time.Minute).Add(-10 * time.Minute)
	r := &Recorder{Store: p.store, Hub: p.hub, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }, begun: now}
	first := now
	p.send(t, a, "1")
	p.send(t, a, "2")
	now = now.Add(time.Minute)
	r.record(t.Context())
	p.send(t, a, "3")
	now = now.Add(30 * time.Second)
	r.Close(t.Context())
	for _, key := range []int64{a.Key, tally.AllChannels} {
		got, err := p.store.Minutes(t.Context(), key, first, first.Add(time.Hour))
		if err != nil || len(got) != 2 || got[0].Sent != 2 || got[0].Queue != 2 || !got[0].At.Equal(first) || got[1].Sent != 1 || got[1].Queue != 3 {
			t.Errorf("of %d: %+v, %v", key, got, err)
		}
	}
	now = first.Add(-time.Hour) // the clock was set back: it is not waited for
	if d := r.untilMinute(); d != time.Minute {
		t.Errorf("waits for %s", d)
	}
}
