package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// words is a kind of agents that hold any config.
func words(s *hosttest.Setup) {
	s.Kinds = map[string]agent.Kind{"words": {
		Secrets: []string{"secret"}, Check: func(json.RawMessage) error { return nil },
		Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil },
	}}
}

// change is a change among others at once: it reports what fails from any goroutine.
func change(h *hosttest.Host, path, body string) {
	h.T.Helper()
	if a := h.Request(h.Key, "PATCH", path, body); a.Status != http.StatusOK {
		h.T.Errorf("PATCH %s %s: %d %s", path, body, a.Status, a.Body)
	}
}

// events reads an event stream from behind the event last until each says that it has
// seen enough.
func events(h *hosttest.Host, path, last string, each func(event, data string) (more bool)) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), await.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL()+"/api/v1"+path, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.Key)
	r.Header.Set("Last-Event-ID", last)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	event := ""
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "":
			event = "" // the end of one
		case "event":
			event = value
		case "data":
			if !each(event, value) {
				return
			}
		}
	}
	h.T.Fatalf("%s: the stream ended: %v", path, lines.Err())
}
