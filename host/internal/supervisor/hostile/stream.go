//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
)

// streams says how a plugin misbehaves once it serves.
type streams struct {
	sick      bool // says that it does not serve
	configure func(o options) error
	register  string // instead of a good first frame; "-" = none
	attach    func(o options, s stream) error
}

func (s streams) health() grpc_health_v1.HealthCheckResponse_ServingStatus {
	if s.sick {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}

type stream = grpc.BidiStreamingServer[pb.Frame, pb.Frame]

// streamModes are faults of what a plugin says once it was let in.
var streamModes = map[string]streams{
	"raw":       {},
	"nothealth": {sick: true},
	"wrong-config": {configure: func(options) error {
		return status.Error(codes.InvalidArgument, "key \"server\": absent, expected HOST:PORT")
	}},
	"config-error": {configure: func(options) error {
		return status.Error(codes.Internal, "\x1b[31mnot today\n"+strings.Repeat("x", 1<<16))
	}},
	"hang-configure": {configure: func(options) error { time.Sleep(sleepTime); return nil }},
	"hang-attach":    {attach: func(options, stream) error { time.Sleep(sleepTime); return nil }, register: "-"},
	"noregister":     {register: message("first", 5)},
	"token":          {register: `{"type":"register","token":"%ELSEWHERE%","capabilities":["text"]}`},
	"badregister":    {register: `{"type":"register","capabilities":7}`},
	"big":            {attach: sendSize(300 << 10)},
	"huge":           {attach: sendSize(2 << 20)},
	"badutf8":        {attach: func(_ options, s stream) error { return send(s, "{\"type\":\"message\",\"text\":\"\xff\xfe\"}") }},
	"junk":           {attach: sendJunk},
	"flood":          {attach: sendFlood},
	"flood-deaf":     {attach: sendFloodDeaf},
	"close-1000":     {attach: func(_ options, s stream) error { return s.Send(&pb.Frame{CloseCode: 1000, CloseReason: "enough"}) }},
	"close-lie": {attach: func(_ options, s stream) error {
		return s.Send(&pb.Frame{CloseCode: 4294967295, CloseReason: strings.Repeat("\x1b", 5000), Json: []byte("x")})
	}},
	"detach": {attach: func(options, stream) error { return nil }},
	"error":  {attach: func(options, stream) error { return status.Error(codes.DataLoss, strings.Repeat("\x00lost", 1000)) }},
	"empty":  {attach: func(_ options, s stream) error { return sendAll(s, &pb.Frame{}) }},
}

// bridge serves the Bridge service, more or less.
type bridge struct {
	pb.UnimplementedBridgeServer
	o       options
	streams streams
}

// Configure implements pb.BridgeServer.
func (b *bridge) Configure(context.Context, *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	if b.streams.configure != nil {
		b.o.strike()
		if err := b.streams.configure(b.o); err != nil {
			return nil, err
		}
	}
	return &pb.ConfigureResponse{}, nil
}

// Attach implements pb.BridgeServer: it registers, then strikes or waits.
func (b *bridge) Attach(s stream) error {
	first := `{"type":"register","platform":"hostile","capabilities":["text"]}`
	if b.streams.register != "" {
		first = strings.ReplaceAll(b.streams.register, "%ELSEWHERE%", b.o.elsewhere)
		b.o.strike()
	}
	if first != "-" {
		if err := send(s, first); err != nil {
			return err
		}
	}
	if b.streams.register == "" {
		if _, err := s.Recv(); err != nil { // register_ack
			return err
		}
	}
	if b.streams.attach != nil {
		b.o.strike()
		if err := b.streams.attach(b.o, s); err != nil || b.ends() {
			return err
		}
	}
	for {
		if _, err := s.Recv(); err != nil {
			<-s.Context().Done()
			return err
		}
	}
}

// ends reports the modes that end their stream and go on running.
func (b *bridge) ends() bool {
	return b.o.mode == "detach" || b.o.mode == "close-1000" || b.o.mode == "close-lie"
}

func message(text string, repeat int) string {
	return fmt.Sprintf(`{"type":"message","conversation_id":"c","user_id":"u","text":%q}`, strings.Repeat(text, repeat))
}

func send(s stream, frame string) error { return s.Send(&pb.Frame{Json: []byte(frame)}) }

// sendAll sends a frame a thousand times.
func sendAll(s stream, f *pb.Frame) error {
	for range 1000 {
		if err := s.Send(f); err != nil {
			return err
		}
	}
	return nil
}

func sendSize(size int) func(options, stream) error {
	return func(_ options, s stream) error { return send(s, message("x", size)) }
}

// sendJunk sends what is answered with errors, and then a message that counts.
func sendJunk(_ options, s stream) error {
	for _, frame := range []string{
		`{`, `[]`, `null`, `{}`, `{"type":7}`, `{"type":"nonsense"}`, `{"type":"message","text":{}}`, `{"type":"message","text":[]}`,
		`{"type":"register"}`, `{"type":"send","text":"for you","channel":"steady","channel_id":"steady"}`,
		strings.Repeat("[", 50_000), message("counts", 1),
	} {
		if err := send(s, frame); err != nil {
			return err
		}
	}
	return nil
}

// floodTime bounds what a flood costs the machine.
const floodTime = 3 * time.Second

// sendFlood sends as fast as it can, reads what comes back, and says on standard
// error how many were answered.
func sendFlood(_ options, s stream) error {
	var refused, echoed int
	sent := make(chan int, 1)
	failed := make(chan error, 1)
	go func() {
		n, err := pour(s)
		sent <- n
		failed <- err
	}()
	for n := -1; n < 0 || refused+echoed < n; {
		f, err := s.Recv()
		switch {
		case err != nil:
			fmt.Fprintf(os.Stderr, "flood: cut off after %d refused, %d echoed: %v\n", refused, echoed, err)
			return err
		case strings.Contains(string(f.Json), `"code":"rate_limited"`):
			refused++
		case strings.Contains(string(f.Json), `"type":"send"`):
			echoed++
		}
		if n < 0 {
			select {
			case n = <-sent:
			default:
			}
		}
	}
	fmt.Fprintf(os.Stderr, "flood: all answered: %d refused, %d echoed\n", refused, echoed)
	return <-failed
}

// sendFloodDeaf sends as fast as it can, and reads nothing.
func sendFloodDeaf(_ options, s stream) error {
	if _, err := pour(s); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

// pour sends as fast as it can, and says how much.
func pour(s stream) (sent int, err error) {
	frame := &pb.Frame{Json: []byte(message("flood ", 10))}
	for end := time.Now().Add(floodTime); time.Now().Before(end); {
		for range 100 {
			if err := s.Send(frame); err != nil {
				return sent, err
			}
			sent++
		}
	}
	return sent, nil
}
