package grpcconn

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
)

// Setup is what the host hands over before it attaches.
type Setup struct {
	Channel     string
	Config      json.RawMessage // a JSON object; nil = none
	HostVersion string
}

// Server is the adapter's end of plugin mode. There is one in a process.
type Server struct {
	pb.UnimplementedBridgeServer
	setup    chan Setup  // holds one
	once     atomic.Bool // Configure was called
	attached chan *Stream
	gone     chan struct{} // closed when Serve has returned

	stdout, stderr *os.File // the process's own

	mu      sync.Mutex // guards current
	current *Stream
}

// NewServer makes the server; Serve runs it.
func NewServer() *Server {
	return &Server{
		setup: make(chan Setup, 1), attached: make(chan *Stream), gone: make(chan struct{}),
		stdout: os.Stdout, stderr: os.Stderr,
	}
}

// ErrHostGone ends what waits for a host that has ended the service.
var ErrHostGone = errors.New("the host has ended the plugin's service")

// Serve does the handshake on standard output, to which nothing may have been
// written before, and serves until the host ends the service.
func (s *Server) Serve() {
	defer close(s.gone)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: pluginSets(s),
		Logger:           hclog.NewNullLogger(), // its lines are of no use to an operator
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return plugin.DefaultGRPCServer(append(o, grpc.MaxRecvMsgSize(maxMessage), grpc.ChainUnaryInterceptor(s.alive)))
		},
	})
}

// alive notes every call of the host, its health checks above all.
func (s *Server) alive(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	s.mu.Lock()
	if s.current != nil {
		s.current.touch()
	}
	s.mu.Unlock()
	return next(ctx, req)
}

// Configure implements pb.BridgeServer.
func (s *Server) Configure(_ context.Context, r *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	if len(r.Config) > 0 && !json.Valid(r.Config) {
		return nil, status.Error(codes.InvalidArgument, "config: found no JSON")
	}
	if s.once.Swap(true) {
		return nil, status.Error(codes.FailedPrecondition, "configured already")
	}
	s.setup <- Setup{r.Channel, r.Config, r.HostVersion}
	return &pb.ConfigureResponse{}, nil
}

// Attach implements pb.BridgeServer.
func (s *Server) Attach(half grpc.BidiStreamingServer[pb.Frame, pb.Frame]) error {
	ctx, cancel := context.WithCancel(half.Context())
	defer cancel()
	stream := newStream(half, cancel)
	select {
	case s.attached <- stream:
	case <-ctx.Done():
		return nil
	}
	// Returning ends the stream, and with it a Send that hangs: gRPC cancels it.
	// So there is no waiting for one here.
	<-ctx.Done()
	stream.over.Store(true)
	return nil
}

// Setup waits for the host's first call. What the adapter prints from then on
// goes to the process's own standard output and error, where the host reads it.
func (s *Server) Setup(ctx context.Context) (Setup, error) {
	select {
	case got := <-s.setup:
		// go-plugin has put pipes of its own here, which nobody reads.
		os.Stdout, os.Stderr = s.stdout, s.stderr
		return got, nil
	case <-s.gone:
		return Setup{}, ErrHostGone
	case <-ctx.Done():
		return Setup{}, context.Cause(ctx)
	}
}

// Accept waits until the host attaches, for the first time or again.
func (s *Server) Accept(ctx context.Context) (*Stream, error) {
	select {
	case stream := <-s.attached:
		s.mu.Lock()
		s.current = stream
		s.mu.Unlock()
		return stream, nil
	case <-s.gone:
		return nil, ErrHostGone
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Gone is closed when the host has ended the service.
func (s *Server) Gone() <-chan struct{} { return s.gone }
