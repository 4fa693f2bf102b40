package grpcconn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

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
	failure  error         // why Serve ended, if not by the host; written before gone is closed

	mu      sync.Mutex // guards current
	current *Stream
}

// NewServer makes the server; Serve runs it.
func NewServer() *Server {
	return &Server{setup: make(chan Setup, 1), attached: make(chan *Stream), gone: make(chan struct{})}
}

// ErrHostGone ends what waits for a host that has ended the service.
var ErrHostGone = errors.New("the host has ended the plugin's service")

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

// Setup waits for the host's first call.
func (s *Server) Setup(ctx context.Context) (Setup, error) {
	select {
	case got := <-s.setup:
		return got, nil
	case <-s.gone:
		return Setup{}, cmp.Or(s.failure, ErrHostGone)
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

// Gone is closed when Serve has returned, which it does when the host has ended the
// service.
func (s *Server) Gone() <-chan struct{} { return s.gone }
