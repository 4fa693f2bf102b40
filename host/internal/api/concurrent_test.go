package api_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// pairs is how many pairs of changes are made at once, one pair after the other.
const pairs = 150

// both runs two functions at once.
func both(a, b func()) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, f := range []func(){a, b} {
		wg.Go(func() {
			<-begin
			f()
		})
	}
	close(begin)
	wg.Wait()
}

// Of two changes of different fields of a channel at once both count: in the row, in
// what the hub goes by, and in the audit log.
func TestConcurrentChangesOfChannel(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, words)
	h.Must(nil, "POST", "/channels", `{"name":"c"}`)
	lost := 0
	for i := 1; i <= pairs; i++ {
		on := i%2 == 0
		both(
			func() { change(h, "/channels/c", fmt.Sprintf(`{"enabled":%t}`, on)) },
			func() { change(h, "/channels/c", fmt.Sprintf(`{"rate_limit":%d}`, i)) },
		)
		var c api.Channel
		h.Must(&c, "GET", "/channels/c", "")
		if c.Enabled != on {
			lost++
		}
		if c.RateLimit != i {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("lost %d values of %d pairs", lost, pairs)
	}
}

// The same of an agent, whose config is merged field by field.
func TestConcurrentChangesOfAgent(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, words)
	h.Must(nil, "POST", "/agents", `{"name":"a","kind":"words","config":{}}`)
	lost := 0
	for i := 1; i <= pairs; i++ {
		on := i%2 == 0
		both(
			func() { change(h, "/agents/a", fmt.Sprintf(`{"enabled":%t,"config":{"one":%d}}`, on, i)) },
			func() { change(h, "/agents/a", fmt.Sprintf(`{"config":{"two":%d}}`, i)) },
		)
		var a api.Agent
		h.Must(&a, "GET", "/agents/a", "")
		if a.Enabled != on {
			lost++
		}
		if string(a.Config) != fmt.Sprintf(`{"one":%d,"two":%d}`, i, i) {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("lost %d values of %d pairs", lost, pairs)
	}
}

// plugins.yaml and an operator change the channel of a plugin at once: what the file
// says of it and what the operator says both count.
func TestReloadBesideChange(t *testing.T) {
	t.Parallel()
	var days atomic.Int64
	h := hosttest.Start(t, hosttest.Whole, func(s *hosttest.Setup) {
		s.Plugins = func() ([]config.Plugin, error) {
			n := int(days.Load())
			return []config.Plugin{{Name: "p", Source: "plugins.yaml:1", Policy: config.PluginPolicy{Retention: &n}}}, nil
		}
	})
	lost := 0
	for i := 1; i <= pairs; i++ {
		days.Store(int64(i))
		on := i%2 == 0
		both(
			func() {
				if a := h.Request(h.Key, "POST", "/plugins/_reload", ""); a.Status != 200 {
					t.Errorf("reload: %d %s", a.Status, a.Body)
				}
			},
			func() { change(h, "/channels/p", fmt.Sprintf(`{"enabled":%t}`, on)) },
		)
		var c api.Channel
		h.Must(&c, "GET", "/channels/p", "")
		if c.RetentionDays != i {
			lost++
		}
		if c.Enabled != on {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("lost %d values of %d pairs", lost, pairs)
	}
}
