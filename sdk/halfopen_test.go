package sdk

import (
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
)

// A host that falls silent without an end is noticed and dialled again, whether
// the network swallows what is sent or takes nothing.
func TestTortureHalfOpen(t *testing.T) {
	for _, how := range []string{toxic.Drop, toxic.Stall} {
		t.Run(how, func(t *testing.T) {
			h := newHost(t)
			proxy := toxic.New(t, strings.TrimPrefix(h.URL, "http://"))
			quickly := quick()
			quickly.silence = 400 * time.Millisecond
			a, hosts := handed()
			r := run(t, h, a, Options{URL: "http://" + proxy.Addr(), timing: quickly})
			first, host := receive(t, "first connection", h.peers), receive(t, "Run", hosts)
			deliver := func(p *peer, text string) {
				t.Helper()
				if err := host.Deliver(t.Context(), Event{SessionKey: "s", Text: text}); err != nil {
					t.Fatal(err)
				}
				if got := receive(t, text, p.frames); !strings.Contains(got, text) {
					t.Fatalf("the host read %s, want %s", got, text)
				}
			}
			deliver(first, "before")
			proxy.Silence(how)
			began := time.Now()
			eventually(t, "silence is noticed", func() bool { return strings.Contains(r.logs.String(), errSilent.Error()) })
			if took := time.Since(began); took < quickly.silence/2 {
				t.Errorf("noticed after %s: something else ended the connection", took)
			}
			proxy.Restore()
			second := receive(t, "second connection", h.peers)
			t.Logf("connected again after %s", time.Since(began).Round(time.Millisecond))
			deliver(second, "after")
		})
	}
}
