package grpcconn

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// serveBridge is Server.Serve without its TLS and its process. The socket's path must be short, and holds the test's name.
func serveBridge(tb testing.TB, bridge pb.BridgeServer, options ...grpc.ServerOption) (socket string) {
	tb.Helper()
	socket = filepath.Join(tb.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(tb.Context(), "unix", socket)
	if err != nil {
		tb.Fatal(err)
	}
	server := grpc.NewServer(append(options, grpc.WaitForHandlers(true))...)
	healthy := health.NewServer()
	healthy.SetServingStatus(healthService, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	pb.RegisterBridgeServer(server, bridge)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	tb.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return socket
}

func dialBridge(tb testing.TB, socket string, options ...grpc.DialOption) *grpc.ClientConn {
	tb.Helper()
	c, err := grpc.NewClient("unix:"+socket, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// servePlugin is the adapter's end, with the options of Server.Serve.
func servePlugin(tb testing.TB) (s *Server, socket string) {
	s = NewServer()
	return s, serveBridge(tb, s, grpc.MaxRecvMsgSize(maxMessage), grpc.ChainUnaryInterceptor(s.alive))
}

// dispense is what go-plugin does in the host.
func dispense(tb testing.TB, socket string) *Plugin {
	tb.Helper()
	glue := PluginSets()[PluginVersion][PluginName].(plugin.GRPCPlugin)
	p, err := glue.GRPCClient(tb.Context(), nil, dialBridge(tb, socket, DialOptions()...))
	if err != nil {
		tb.Fatal(err)
	}
	return p.(*Plugin)
}

// attach opens a stream with both its ends; it ends with the connection.
func attach(tb testing.TB, s *Server, p *Plugin) (host, adapter *Stream) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), await.Limit)
	defer cancel() // of the opening: the stream must outlive it
	host, err := p.Attach(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	if adapter, err = s.Accept(ctx); err != nil {
		tb.Fatal(err)
	}
	return host, adapter
}

func streams(tb testing.TB) (host, adapter *Stream) {
	tb.Helper()
	s, socket := servePlugin(tb)
	return attach(tb, s, dispense(tb, socket))
}

// each runs the test once with each end as ours, the one that is tested.
func each(t *testing.T, test func(t *testing.T, ours, theirs *Stream)) {
	for _, side := range []string{"host", "adapter"} {
		t.Run(side, func(t *testing.T) {
			ours, theirs := streams(t)
			if side == "adapter" {
				ours, theirs = theirs, ours
			}
			test(t, ours, theirs)
		})
	}
}

// rawBridge hands out the plugin's end as gRPC has it.
type rawBridge struct {
	pb.UnimplementedBridgeServer
	attached chan half
}

func (r *rawBridge) Attach(s grpc.BidiStreamingServer[pb.Frame, pb.Frame]) error {
	r.attached <- s
	<-s.Context().Done()
	return nil
}

// eachRaw is each against a peer without limits and manners, for what our own
// end would never send or leave undone.
func eachRaw(t *testing.T, test func(t *testing.T, ours *Stream, theirs half)) {
	t.Run("host", func(t *testing.T) {
		r := &rawBridge{attached: make(chan half, 1)}
		host, err := dispense(t, serveBridge(t, r)).Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		test(t, host, await.Value(t, "attach", r.attached))
	})
	t.Run("adapter", func(t *testing.T) {
		s, socket := servePlugin(t)
		theirs, err := pb.NewBridgeClient(dialBridge(t, socket)).Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		adapter := await.Value(t, "attach", s.attached)
		test(t, adapter, theirs)
	})
}

// ends reads c to its end in the background.
func ends(c transport.Conn) <-chan error {
	end := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Read(); err != nil {
				end <- err
				return
			}
		}
	}()
	return end
}

func wantCode(t *testing.T, end <-chan error, code wire.CloseCode, reason string) {
	t.Helper()
	var closed *transport.CloseError
	if err := await.Value(t, "end", end); !errors.As(err, &closed) || closed.Code != code || closed.Reason != reason {
		t.Errorf("peer's Read = %v, want close code %d %q", err, code, reason)
	}
}

func TestStreamFrames(t *testing.T) {
	each(t, func(t *testing.T, reader, writer *Stream) {
		for _, n := range []int{0, 1, 70_000, wire.MaxFrame} {
			sent := []byte(strings.Repeat("0123456789abc", n/13+1)[:n]) // 13: no power of two is a period
			done := make(chan error, 1)
			go func() { done <- writer.Write(sent) }()
			if got, err := reader.Read(); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes: Read = %d bytes, %v", n, len(got), err)
			}
			if err := await.Value(t, "write", done); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestStreamFrameTooLarge(t *testing.T) {
	each(t, func(t *testing.T, reader, writer *Stream) {
		end := ends(writer)
		go func() { _ = writer.Write(bytes.Repeat([]byte{'x'}, wire.MaxFrame+1)) }()
		if err := await.Value(t, "reader's end", ends(reader)); !strings.Contains(err.Error(), "262145") {
			t.Errorf("Read = %v, want an error that names the size", err)
		}
		wantCode(t, end, wire.CloseTooLarge, "frame too large")
	})
}

func TestStreamMessageTooLarge(t *testing.T) {
	t.Run("of a peer", func(t *testing.T) {
		eachRaw(t, func(t *testing.T, ours *Stream, theirs half) {
			end := ends(ours)
			sent := make(chan struct{})
			go func() { defer close(sent); _ = theirs.Send(&pb.Frame{Json: make([]byte, maxMessage+1)}) }()
			if err := await.Value(t, "end", end); !strings.Contains(err.Error(), "message too large") {
				t.Errorf("Read = %v, want that the message is too large", err)
			}
			if err := ours.Write([]byte("x")); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Write = %v, want transport.ErrClosed", err)
			}
			if f, err := theirs.Recv(); err == nil {
				t.Errorf("peer's Recv = %v, want the stream's end", f)
			}
			await.Value(t, "peer's Send returns", sent)
		})
	})
	t.Run("of ours", func(t *testing.T) {
		each(t, func(t *testing.T, ours, theirs *Stream) {
			ourEnd, theirEnd := ends(ours), ends(theirs)
			_ = ours.Write(make([]byte, maxMessage+1)) // the host's end says so itself, the adapter's can't
			for name, end := range map[string]<-chan error{"ours": ourEnd, "theirs": theirEnd} {
				if err := await.Value(t, name, end); err == nil || errors.Is(err, transport.ErrClosed) {
					t.Errorf("%s = %v, want a broken stream", name, err)
				}
			}
		})
	})
}

func TestStreamInvalidUTF8(t *testing.T) {
	for name, frame := range map[string]string{"lone byte": "{\"a\":\"\xff\"}", "cut off": "abc\xe2\x82"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, reader, writer *Stream) {
				end := ends(writer)
				_ = writer.Write([]byte(frame))
				if got, err := reader.Read(); err == nil {
					t.Errorf("Read = %q, want an error", got)
				}
				wantCode(t, end, wire.CloseInvalidUTF8, "frame is not valid UTF-8")
			})
		})
	}
}

func TestStreamClose(t *testing.T) {
	for name, c := range map[string]struct {
		code        wire.CloseCode
		given, want string
	}{
		"normal":   {wire.CloseNormal, "why", "why"},
		"draining": {wire.CloseDraining, "", ""},
		"replaced": {wire.CloseReplaced, "a\xffb", "a\uFFFDb"},
		// a reason must fit a WebSocket's close frame too:
		"123 bytes":     {wire.CloseTooSlow, strings.Repeat("x", 123), strings.Repeat("x", 123)},
		"124 bytes":     {wire.CloseRefused, strings.Repeat("x", 124), strings.Repeat("x", 123)},
		"two byte rune": {wire.CloseRefused, strings.Repeat("ä", 62), strings.Repeat("ä", 61)},
		"long rune":     {wire.CloseRefused, "x" + strings.Repeat("😀", 31), "x" + strings.Repeat("😀", 30)},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, ours, theirs *Stream) {
				ourEnd := ends(ours)
				if err := errors.Join(ours.Write([]byte("last words")), ours.Close(c.code, c.given)); err != nil {
					t.Fatal(err)
				}
				if got, err := theirs.Read(); err != nil || string(got) != "last words" {
					t.Errorf("peer's Read = %q, %v, want what was written before Close", got, err)
				}
				wantCode(t, ends(theirs), c.code, c.want)
				if err := await.Value(t, "our end", ourEnd); !errors.Is(err, transport.ErrClosed) {
					t.Errorf("our Read = %v, want transport.ErrClosed", err)
				}
				for _, s := range []*Stream{ours, theirs} {
					_, read := s.Read()
					if closed, wrote := s.Close(wire.CloseNormal, ""), s.Write([]byte("x")); closed != nil || !errors.Is(wrote, transport.ErrClosed) || !errors.Is(read, transport.ErrClosed) {
						t.Errorf("after the end: Close = %v, Write = %v, Read = %v, want nil and twice transport.ErrClosed", closed, wrote, read)
					}
				}
			})
		})
	}
}

func TestStreamReasonThatThePeerDidNotClip(t *testing.T) {
	eachRaw(t, func(t *testing.T, ours *Stream, theirs half) {
		_ = theirs.Send(&pb.Frame{CloseCode: 4001, CloseReason: strings.Repeat("ä", 500)})
		wantCode(t, ends(ours), 4001, strings.Repeat("ä", 61))
	})
}

func TestStreamBothClose(t *testing.T) {
	for range 20 {
		host, adapter := streams(t)
		_, _ = host.Close(wire.CloseDraining, "host"), adapter.Close(wire.CloseNormal, "adapter")
		for name, end := range map[string]<-chan error{"host": ends(host), "adapter": ends(adapter)} {
			if err := await.Value(t, name, end); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("%s: Read = %v, want transport.ErrClosed", name, err)
			}
		}
	}
}

func TestStreamCloseOnce(t *testing.T) {
	eachRaw(t, func(t *testing.T, ours *Stream, theirs half) {
		end := ends(ours)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				_ = ours.Close(wire.CloseReplaced, "once")
				_ = ours.Write([]byte("late"))
			})
		}
		group.Wait()
		if f, err := theirs.Recv(); err != nil || f.CloseCode != uint32(wire.CloseReplaced) {
			t.Errorf("peer's Recv = %v, %v, want the close frame", f, err)
		}
		// The peer does not answer: what ends the stream is the linger.
		if f, err := theirs.Recv(); err == nil {
			t.Errorf("peer's next Recv = %v, want the stream's end", f)
		}
		if err := await.Value(t, "our end", end); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Read = %v, want transport.ErrClosed", err)
		}
	})
}

// transport.ErrClosed is for who has called Close, also if the stream broke between two Reads.
func TestStreamBrokenOff(t *testing.T) {
	s, socket := servePlugin(t)
	p := dispense(t, socket)
	host, adapter := attach(t, s, p)
	host.cancel() // no close frame
	await.Until(t, "adapter's Write fails", func() bool { return adapter.Write([]byte("x")) != nil })
	for name, c := range map[string]*Stream{"host": host, "adapter": adapter} {
		var closed *transport.CloseError
		if err := await.Value(t, name, ends(c)); errors.As(err, &closed) || errors.Is(err, transport.ErrClosed) {
			t.Errorf("%s: Read = %v, want neither a close code of the peer nor transport.ErrClosed", name, err)
		}
	}
	_, _ = attach(t, s, p) // the plugin still serves
}

// A write that the peer does not take must not keep the stream: its deadline and
// Close both end it. Only the error tells which of them did.
func TestStreamWriteHangs(t *testing.T) {
	frames := make([][]byte, 256) // more than any window of HTTP/2 holds
	for i := range frames {
		frames[i] = bytes.Repeat([]byte{'x'}, wire.MaxFrame)
	}
	test := func(t *testing.T, ours *Stream, closes bool, want string) {
		t.Parallel()
		written, read := make(chan error, 1), ends(ours)
		go func() { written <- ours.Write(frames...) }()
		await.Until(t, "Write begins", func() bool {
			free := ours.writing.TryLock()
			if free {
				ours.writing.Unlock()
			}
			return !free
		})
		if closes {
			_ = ours.Close(wire.CloseNormal, "")
		}
		ctx, cancel := context.WithTimeout(t.Context(), transport.WriteTimeout+await.Limit)
		defer cancel()
		for what, end := range map[string]<-chan error{"Write": written, "Read": read} {
			select {
			case err := <-end:
				if err == nil || what == "Read" && !strings.Contains(err.Error(), want) {
					t.Errorf("%s = %v, want %q", what, err, want)
				}
			case <-ctx.Done():
				t.Errorf("%s still hangs %s after its deadline", what, await.Limit)
			}
		}
	}
	t.Run("to its deadline", func(t *testing.T) {
		eachRaw(t, func(t *testing.T, ours *Stream, _ half) { test(t, ours, false, "too slow") })
	})
	t.Run("to Close", func(t *testing.T) {
		eachRaw(t, func(t *testing.T, ours *Stream, _ half) { test(t, ours, true, transport.ErrClosed.Error()) })
	})
}

func TestStreamPing(t *testing.T) {
	host, adapter := streams(t)
	_, _ = ends(host), ends(adapter)
	hostHeard, adapterHeard := host.Heard(), adapter.Heard()
	if took := host.RoundTrip(); took != 0 {
		t.Errorf("answered within %s before it asked", took)
	}
	if err := errors.Join(adapter.Ping(), host.Ping()); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "both ends hear the health check", func() bool {
		return host.Heard().After(hostHeard) && adapter.Heard().After(adapterHeard)
	})
	await.Until(t, "the host knows how long it took", func() bool { return host.RoundTrip() > 0 })
	if took := adapter.RoundTrip(); took != 0 {
		t.Errorf("the adapter's end, which does not ask, was answered within %s", took)
	}
}

// Both carry the same frame there and back, over the sockets that they have in
// use: a unix socket with gRPC, TCP on loopback with a WebSocket.
func BenchmarkRoundTrip(b *testing.B) {
	frame := []byte(`{"type":"message","session_key":"irc:net:nick","user_id":"nick","text":"` + strings.Repeat("x", 200) + `"}`)
	b.Run("stream", func(b *testing.B) {
		host, adapter := streams(b)
		roundTrips(b, host, adapter, frame)
	})
	b.Run("websocket", func(b *testing.B) {
		accepted := make(chan *transport.WebSocket, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, err := transport.Upgrade(w, r); err == nil {
				accepted <- c
			}
		}))
		b.Cleanup(server.Close)
		adapter, err := transport.Dial(b.Context(), strings.Replace(server.URL, "http", "ws", 1), nil)
		if err != nil {
			b.Fatal(err)
		}
		roundTrips(b, <-accepted, adapter, frame)
	})
}

func roundTrips(b *testing.B, host, adapter transport.Conn, frame []byte) {
	b.Helper()
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		for {
			got, err := adapter.Read()
			if err != nil || adapter.Write(got) != nil {
				return
			}
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		if err := host.Write(frame); err != nil {
			b.Fatal(err)
		}
		if got, err := host.Read(); err != nil || len(got) != len(frame) {
			b.Fatalf("Read = %d bytes, %v", len(got), err)
		}
	}
	_ = host.Close(wire.CloseNormal, "")
	for err := error(nil); err == nil; _, err = host.Read() { // frees it
	}
	<-echoed
}
