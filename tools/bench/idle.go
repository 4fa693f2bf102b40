package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gorilla/websocket"
)

// maxSettle keeps a run short of the host's first ping.
const maxSettle = 30 * time.Second

// warmUp is how many adapters come and go before the first look.
const warmUp = 20

// IdleConfig is what Idle runs.
type IdleConfig struct {
	Exe      string
	Dir      string // where the host's data directory is made; "" = the system's
	Adapters int
	Settle   time.Duration // before each look at the host's memory
	Progress Progress
}

// IdleReport is what idle adapters cost. Bytes are of one adapter; before is
// the host after a fresh start with all channels, when a few have come and gone.
type IdleReport struct {
	Machine
	Adapters int     `json:"adapters"`
	Settle   float64 `json:"settle_seconds"`
	Connect  float64 `json:"connect_seconds"` // all of them for the first time
	Storm    float64 `json:"storm_seconds"`   // all of them again, after all were cut off

	Before   Memory `json:"before"`
	Attached Memory `json:"attached"`
	After    Memory `json:"after_storm"`

	PerAdapter      Memory `json:"per_adapter"`
	PerAdapterStorm Memory `json:"per_adapter_after_storm"`
}

// Idle attaches adapters that say nothing, cuts them all off and lets them all
// come back at once.
func Idle(ctx context.Context, c IdleConfig) (r IdleReport, err error) {
	if c.Adapters < 1 || c.Adapters > maxConns {
		return r, fmt.Errorf("adapters: found %d, expected 1 to %d", c.Adapters, maxConns)
	}
	if c.Settle < 0 || c.Settle > maxSettle {
		return r, fmt.Errorf("settle: found %s, expected 0 to %s", c.Settle, maxSettle)
	}
	if err := allowFiles(c.Adapters); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(c.Dir, "pontoon-bench-")
	if err != nil {
		return r, fmt.Errorf("make data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c.Progress.say(fmt.Sprintf("making %d channels", c.Adapters))
	tokens, err := idleChannels(ctx, c, dir)
	if err != nil {
		return r, err
	}
	host, err := startHost(ctx, c.Exe, dir) // afresh: what provisioning left in memory is not the adapters'
	if err != nil {
		return r, err
	}
	defer host.stop()
	r = IdleReport{Machine: DescribeMachine(dir), Adapters: c.Adapters, Settle: c.Settle.Seconds()}
	return r, r.run(ctx, c, host, tokens)
}

func idleChannels(ctx context.Context, c IdleConfig, dir string) ([]string, error) {
	host, err := startHost(ctx, c.Exe, dir)
	if err != nil {
		return nil, err
	}
	defer host.stop()
	return provision(ctx, host, "idle", c.Adapters)
}

func (r *IdleReport) run(ctx context.Context, c IdleConfig, host *child, tokens []string) error {
	look := func(m *Memory) error {
		select {
		case <-time.After(c.Settle):
		case <-ctx.Done():
			return ctx.Err()
		}
		*m = memoryOf(host.pid())
		return nil
	}
	var crowd crowd
	defer crowd.cut()
	// The program's own pages, which are read from its file when they are first
	// used, are not the adapters'.
	if err := crowd.attach(ctx, host.bridge(), tokens[:min(warmUp, len(tokens))]); err != nil {
		return err
	}
	crowd.cut()
	if err := look(&r.Before); err != nil {
		return err
	}
	for _, step := range []struct {
		what   string
		took   *float64
		memory *Memory
	}{
		{"attaching", &r.Connect, &r.Attached},
		{"attaching all again", &r.Storm, &r.After},
	} {
		crowd.cut()
		c.Progress.say(step.what)
		began := now()
		if err := crowd.attach(ctx, host.bridge(), tokens); err != nil {
			return err
		}
		*step.took = (now() - began).Seconds()
		if err := look(step.memory); err != nil {
			return err
		}
		if n := crowd.gone(); n > 0 {
			return fmt.Errorf("the host dropped %d of %d idle adapters", n, len(tokens))
		}
	}
	r.PerAdapter = r.Attached.per(r.Before, r.Adapters)
	r.PerAdapterStorm = r.After.per(r.Before, r.Adapters)
	return nil
}

// per is what each of n added to before.
func (m Memory) per(before Memory, n int) Memory {
	return Memory{RSS: (m.RSS - before.RSS) / int64(n), PSS: (m.PSS - before.PSS) / int64(n)}
}

// crowd is adapters that listen and say nothing.
type crowd struct {
	wg sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns []net.Conn
	ended int
}

func (c *crowd) attach(ctx context.Context, url string, tokens []string) error {
	return each(len(tokens), 4*dialers, func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		ws, conn, err := connect(ctx, url, tokens[i])
		if err != nil {
			return fmt.Errorf("adapter %d: %w", i, err)
		}
		c.mu.Lock()
		c.conns = append(c.conns, conn.Conn)
		c.mu.Unlock()
		c.wg.Go(func() { c.listen(ws) })
		return nil
	})
}

// listen answers pings until the connection ends.
func (c *crowd) listen(ws *websocket.Conn) {
	for {
		if _, _, err := ws.NextReader(); err != nil {
			break
		}
	}
	_ = ws.Close()
	c.mu.Lock()
	c.ended++
	c.mu.Unlock()
}

func (c *crowd) gone() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// cut resets all connections.
func (c *crowd) cut() {
	c.mu.Lock()
	for _, conn := range c.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // no port is left waiting
		}
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.wg.Wait()
	c.mu.Lock()
	c.conns, c.ended = nil, 0
	c.mu.Unlock()
}

// Print writes the report for people.
func (r *IdleReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d idle registered adapters, %gs to settle\n\n", r.Machine, r.Adapters, r.Settle)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "HOST\tTOOK\tRSS MB\tPSS MB\tRSS KB/ADAPTER\tPSS KB/ADAPTER")
	row := func(name, took string, m, per Memory) {
		kb := func(n int64) string { return Number(float64(n)/1024, 1) }
		mb := func(n int64) string { return Number(float64(n)/(1<<20), 1) }
		if per == (Memory{}) {
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t\t\n", name, took, mb(m.RSS), mb(m.PSS))
			return
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\n", name, took, mb(m.RSS), mb(m.PSS), kb(per.RSS), kb(per.PSS))
	}
	row("nobody attached", "", r.Before, Memory{})
	row("all attached", Number(r.Connect, 2)+" s", r.Attached, r.PerAdapter)
	row("all again, at once", Number(r.Storm, 2)+" s", r.After, r.PerAdapterStorm)
	return tab.Flush()
}
