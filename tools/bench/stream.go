package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/pontoon-bridge/pontoon/sdk/transport/grpcconn"
	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// StreamConfig is what Streams runs.
type StreamConfig struct {
	Windows  []int // frames in flight
	Size     int   // bytes of a frame
	Rounds   int
	Duration time.Duration // of one measurement
	Progress Progress
}

// The two ways in which a child gives frames back.
const (
	viaConn = "conn" // through transport.Conn, as an adapter does
	viaGRPC = "grpc" // nothing but the stream below it
)

// Streams measures the connection of a plugin beside the bare gRPC stream that
// it is made of, in turns: both to a child that go-plugin has started and
// secured, and that gives every frame back.
func Streams(ctx context.Context, c StreamConfig) (LoadReport, error) {
	limits := ModesConfig{Windows: c.Windows, Rounds: c.Rounds, Duration: c.Duration}
	if err := limits.validate(); err != nil {
		return LoadReport{}, err
	}
	if c.Size < 1 || c.Size > maxSize {
		return LoadReport{}, fmt.Errorf("frame size: found %d, expected 1 to %d", c.Size, maxSize)
	}
	ways := []string{viaConn, viaGRPC}
	var ends []*farEnd
	defer func() {
		for _, e := range ends {
			e.client.Kill()
		}
	}()
	for _, way := range ways {
		e, err := startFarEnd(ctx, way)
		if err != nil {
			return LoadReport{}, fmt.Errorf("%s: %w", way, err)
		}
		ends = append(ends, e)
	}
	report := LoadReport{Machine: DescribeMachine(""), Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Base: "BARE GRPC"}
	for _, window := range c.Windows {
		s := Scenario{Conns: 1, Window: window, Conversations: 1, Size: c.Size}
		samples := make([][]Sample, len(ways))
		for round := range c.Rounds {
			c.Progress.say(fmt.Sprintf("%s: round %d of %d", s.Name(), round+1, c.Rounds))
			for i := range ways {
				i = (i + round) % len(ways)
				one, err := ends[i].measure(ctx, s, c.Duration)
				if err != nil {
					return LoadReport{}, fmt.Errorf("%s: %w", ways[i], err)
				}
				samples[i] = append(samples[i], one)
			}
		}
		for i := range samples[0] {
			ratio := samples[0][i].Throughput / samples[1][i].Throughput
			samples[0][i].Ratio = &ratio
		}
		r := ScenarioReport{Scenario: s}
		for i, way := range ways {
			r.Targets = append(r.Targets, summarize(way, samples[i]))
		}
		report.Scenarios = append(report.Scenarios, r)
	}
	return report, nil
}

// farEnd is a child with its connection.
type farEnd struct {
	client *plugin.Client
	pid    int
	open   func(context.Context) (flow, error)
}

// flow is a stream of frames; both functions and end may be called from one
// goroutine.
type flow struct {
	send func([]byte) error
	recv func() ([]byte, error)
	end  func()
}

func startFarEnd(ctx context.Context, way string) (*farEnd, error) {
	cmd, err := roleCommand(roleStreamEcho, way)
	if err != nil {
		return nil, err
	}
	bindToParent(cmd)
	sets := grpcconn.PluginSets()
	if way == viaGRPC {
		sets = bareSets()
	}
	e := &farEnd{client: plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: grpcconn.Handshake(), VersionedPlugins: sets, Cmd: cmd, AutoMTLS: true, StartTimeout: startTimeout,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, GRPCDialOptions: grpcconn.DialOptions(), Logger: hclog.NewNullLogger(),
	})}
	got, err := e.dispense()
	if err != nil {
		e.client.Kill()
		return nil, err
	}
	e.pid = cmd.Process.Pid
	switch far := got.(type) {
	case *grpcconn.Plugin:
		e.open = func(ctx context.Context) (flow, error) { return openConn(ctx, far) }
	case pb.BridgeClient:
		e.open = func(ctx context.Context) (flow, error) { return openBare(ctx, far) }
	}
	return e, ctx.Err()
}

func (e *farEnd) dispense() (any, error) {
	protocol, err := e.client.Client()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	return protocol.Dispense(grpcconn.PluginName)
}

func openConn(ctx context.Context, far *grpcconn.Plugin) (flow, error) {
	c, err := far.Attach(ctx)
	if err != nil {
		return flow{}, err
	}
	return flow{
		send: func(b []byte) error { return c.Write(b) },
		recv: c.Read,
		end: func() {
			_ = c.Close(wire.CloseNormal, "")
			for {
				if _, err := c.Read(); err != nil {
					return
				}
			}
		},
	}, nil
}

func openBare(ctx context.Context, far pb.BridgeClient) (flow, error) {
	ctx, cancel := context.WithCancel(ctx)
	s, err := far.Attach(ctx)
	if err != nil {
		cancel()
		return flow{}, err
	}
	return flow{
		send: func(b []byte) error { return s.Send(&pb.Frame{Json: b}) },
		recv: func() ([]byte, error) {
			f, err := s.Recv()
			return f.GetJson(), err
		},
		end: cancel,
	}, nil
}

// measure keeps as many frames in flight as the scenario has.
func (e *farEnd) measure(ctx context.Context, s Scenario, length time.Duration) (Sample, error) {
	f, err := e.open(ctx)
	if err != nil {
		return Sample{}, err
	}
	defer f.end()
	frame := []byte(`"` + strings.Repeat("x", max(s.Size-2, 0)) + `"`)
	sent := make([]time.Duration, s.Window) // the answers come in order
	for i := range sent {
		sent[i] = now()
		if err := f.send(frame); err != nil {
			return Sample{}, err
		}
	}
	var h histogram
	var before usage
	began, counted := time.Duration(0), 0
	for i, end := 0, now()+warmup+length; ; i = (i + 1) % s.Window {
		got, err := f.recv()
		if err != nil {
			return Sample{}, err
		}
		if len(got) != len(frame) {
			return Sample{}, fmt.Errorf("frame of %d bytes came back as %d", len(frame), len(got))
		}
		at := now()
		switch {
		case began > 0:
			h.add(at - sent[i])
			counted++
		case at >= end-length:
			before, began = usageOf(e.pid), now()
		}
		if at >= end {
			return e.sampleOf(&h, counted, now()-began, before)
		}
		sent[i] = at
		if err := f.send(frame); err != nil {
			return Sample{}, err
		}
	}
}

func (e *farEnd) sampleOf(h *histogram, counted int, took time.Duration, before usage) (Sample, error) {
	after := usageOf(e.pid)
	if counted == 0 {
		return Sample{}, errors.New("no frame came back in time")
	}
	one := Sample{
		Throughput: float64(counted) / took.Seconds(), OwnCPU: Micros(after.own-before.own) / float64(counted),
		P50: Micros(h.quantile(0.5)), P90: Micros(h.quantile(0.9)), P99: Micros(h.quantile(0.99)), Max: Micros(h.max),
		Count: Count{Sent: counted},
	}
	if after.known {
		cpu := Micros(after.server-before.server) / float64(counted)
		one.ServerCPU = &cpu
	}
	return one, nil
}

// serveStream is the child: it gives every frame back, until the parent ends it.
func serveStream(ctx context.Context, way string) error {
	switch way {
	case viaConn:
		return echoConns(ctx)
	case viaGRPC:
		plugin.Serve(&plugin.ServeConfig{
			HandshakeConfig: grpcconn.Handshake(), VersionedPlugins: bareSets(), Logger: hclog.NewNullLogger(), GRPCServer: plugin.DefaultGRPCServer,
		})
		return nil
	}
	return fmt.Errorf("way: found %q, expected %s or %s", way, viaConn, viaGRPC)
}

func echoConns(ctx context.Context) error {
	s := grpcconn.NewServer()
	served := make(chan struct{})
	go func() {
		_ = s.Serve() // the parent sees that nothing comes back
		close(served)
	}()
	for {
		c, err := s.Accept(ctx)
		if err != nil {
			<-served
			return nil // the parent has ended it
		}
		for {
			frame, err := c.Read()
			if err == nil {
				err = c.Write(frame)
			}
			if err != nil {
				break
			}
		}
	}
}

// bare is the service of a plugin with nothing above gRPC.
type bare struct {
	plugin.NetRPCUnsupportedPlugin
	pb.UnimplementedBridgeServer
}

var _ plugin.GRPCPlugin = (*bare)(nil)

func bareSets() map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{grpcconn.PluginVersion: {grpcconn.PluginName: &bare{}}}
}

func (b *bare) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterBridgeServer(s, b)
	return nil
}

func (b *bare) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return pb.NewBridgeClient(c), nil
}

// Attach implements pb.BridgeServer.
func (b *bare) Attach(s grpc.BidiStreamingServer[pb.Frame, pb.Frame]) error {
	for {
		f, err := s.Recv()
		if err != nil {
			return nil // the far end has gone
		}
		if err := s.Send(&pb.Frame{Json: f.Json}); err != nil {
			return nil
		}
	}
}
