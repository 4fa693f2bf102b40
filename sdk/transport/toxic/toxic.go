// Package toxic puts a TCP proxy between adapter and host whose connections can
// fall silent without an end, as when a cable is pulled. It is for tests.
package toxic

import (
	"context"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// Left are the library's goroutines that may stay behind when a connection ends
// while it is stalled: they hand on bytes that nobody takes any more.
func Left() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/Shopify/toxiproxy/v2/toxics.(*NoopToxic).Pipe"),
		goleak.IgnoreTopFunction("github.com/Shopify/toxiproxy/v2/stream.(*ChanWriter).Write"),
	}
}

// Proxy forwards connections to one address.
type Proxy struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// Ways of falling silent.
const (
	Drop  = "timeout"   // what is sent is acknowledged by the network and lost
	Stall = "bandwidth" // what is sent is not taken: the sender's buffers fill
)

var toxics = map[string]string{
	Drop:  `"type":"timeout","attributes":{"timeout":0}`,
	Stall: `"type":"bandwidth","attributes":{"rate":0}`,
}

// New starts a proxy that ends with the test.
func New(t testing.TB, upstream string) *Proxy {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // some of the library's lines know no other switch
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{t, toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", upstream)}
	if err := p.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.proxy.Toxics.ResetToxics(context.Background()) // a stalled connection does not notice its end
		p.proxy.Stop()
	})
	return p
}

// Addr is where it listens.
func (p *Proxy) Addr() string { return p.proxy.Listen }

// Silence lets no byte through any more, either way, on connections old and new.
func (p *Proxy) Silence(how string) {
	p.t.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		toxic := `{"name":"` + stream + `","stream":"` + stream + `",` + toxics[how] + `}`
		if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Restore lets new connections through. Those that fell silent by Drop end.
func (p *Proxy) Restore() { p.proxy.Toxics.ResetToxics(p.t.Context()) }

// Cut ends all connections; new ones are let through.
func (p *Proxy) Cut() error {
	p.proxy.Stop()
	return p.proxy.Start()
}
