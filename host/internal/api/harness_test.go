package api_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

// host is the API with all that is behind it, and no server before it.
type host struct {
	t       *testing.T
	dir     string
	store   *sqlite.Store
	hub     *hub.Hub
	slots   *bridge.Slots
	handler http.Handler
	key     string // the operator's
	ending  atomic.Bool
}

// start makes a host. plugins may be nil.
func start(t *testing.T, plugins func(h *host) api.Plugins) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir()}
	log := slog.New(slog.DiscardHandler)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	roster := agent.NewRoster(log)
	roster.Register("echo", agent.Kind{Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil }})
	roster.Register("words", agent.Kind{ // holds any config
		Secrets: []string{"secret"}, Check: func(json.RawMessage) error { return nil },
		Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil },
	})
	var err error
	h.store, err = sqlite.Open(t.Context(), h.dir, sqlite.Options{Names: attach.Names})
	must(err)
	must(roster.Load(t.Context(), h.store))
	keys, err := auth.OpenKeys(h.dir)
	must(err)
	h.key, err = auth.ReadKey(h.dir)
	must(err)
	files, err := attach.Open(h.dir, attach.Options{Base: func() string { return "http://host.test" }, Log: log})
	must(err)
	h.hub = hub.New(hub.Options{Store: h.store, Attachments: files, Agents: roster, Commands: command.New(), Log: log})
	gate := auth.NewGate(h.store, nil)
	h.slots = bridge.New(bridge.Local(h.hub), gate, bridge.Options{Log: log})
	o := api.Options{
		Store: h.store, Attachments: files, Hub: h.hub, Slots: h.slots, Agents: roster, Keys: keys, Gate: gate, Fronts: []front.End{},
		Assets: agent.Assets(), Log: log, Version: "test", Now: time.Now, Ready: h.store.Writable, Ending: h.ending.Load,
	}
	if plugins != nil {
		o.Plugins = plugins(h)
	}
	h.handler = api.New(t.Context(), o)
	t.Cleanup(func() {
		h.slots.Close()
		h.hub.Close()
		roster.Close()
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// answer is what the API answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// call makes a request with the operator's key; header has pairs of names and values.
func (h *host) call(method, path, body string, header ...string) answer {
	return h.callAs(h.key, method, path, body, header...)
}

func (h *host) callAs(key, method, path, body string, header ...string) answer {
	r := httptest.NewRequest(method, "/api/v1"+path, bytes.NewReader([]byte(body)))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// must is call for what has to succeed; out nil = the answer does not matter.
func (h *host) must(out any, method, path, body string, header ...string) answer {
	h.t.Helper()
	a := h.call(method, path, body, header...)
	if a.status/100 != 2 {
		h.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(a.body), out); err != nil {
			h.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
		}
	}
	return a
}

// change is must for changes at once: it reports what fails from any goroutine.
func (h *host) change(path, body string) {
	h.t.Helper()
	if a := h.call("PATCH", path, body); a.status != http.StatusOK {
		h.t.Errorf("PATCH %s %s: %d %s", path, body, a.status, a.body)
	}
}
