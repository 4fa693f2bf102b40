package plugin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/grpcconn"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	roleVariable = "PONTOON_SDK_TEST_ROLE" // makes a process of this test binary
	lifeline     = 3                       // a descriptor of such a process, closed when it has ended
	parrotConfig = `{"greeting":"Hello"}`
	conversation = "test:c"
	testToken    = "pnt_a-token-nobody-may-log"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// TestProcess is no test: it is main in a child. Flags of the test binary are
// not for Main.
func TestProcess(t *testing.T) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		t.Skip("is the main function of other tests' children")
	case "parrot":
		os.Args = []string{"parrot"}
		Main("test", &parrot{hosts: make(chan *sdk.Host, 1)})
	case "orphan", "stubborn orphan":
		// A line on the pipe of a dead parent would end it too soon: by SIGPIPE.
		os.Stderr, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		os.Args = []string{"parrot"}
		Main("test", &parrot{hosts: make(chan *sdk.Host, 1), stubborn: role != "orphan"})
	case "parent of orphan", "parent of stubborn orphan":
		c := launch(t, strings.TrimPrefix(role, "parent of "), os.NewFile(lifeline, "lifeline"))
		p := c.configured(t)
		await.Value(t, "greeting", p.frames)
		fmt.Println("ready") // to be killed
		select {}
	}
}

// logs keeps what was written to it.
type logs struct {
	mu sync.Mutex // guards b
	b  strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// parrot says what it is told.
type parrot struct {
	hosts    chan *sdk.Host // holds one
	stubborn bool
}

func (p *parrot) Run(ctx context.Context, h *sdk.Host) error {
	var config struct{ Greeting string }
	if err := h.Config(&config); err != nil {
		return err
	}
	say := func(text string) error {
		return h.Deliver(context.WithoutCancel(ctx), sdk.Event{SessionKey: conversation, UserID: "me", Text: text})
	}
	if err := say(config.Greeting); err != nil {
		return err
	}
	p.hosts <- h
	<-ctx.Done()
	if p.stubborn {
		select {}
	}
	return say("last words")
}

func (p *parrot) Send(ctx context.Context, _ sdk.Target, text string) (sdk.Receipt, error) {
	h := <-p.hosts
	p.hosts <- h
	if text == "print" {
		for range 1 << 20 / 64 {
			fmt.Println(strings.Repeat("x", 63))
		}
	}
	return sdk.Receipt{}, h.Deliver(ctx, sdk.Event{SessionKey: conversation, UserID: "me", Text: "echo: " + text})
}

// said is the frame of what a parrot says.
func said(text string) string {
	return fmt.Sprintf(`{"type":"message","session_key":%q,"user_id":"me","text":%q}`, conversation, text)
}

// send is the host's frame that says text.
func send(conversation, text string) string {
	f := wire.Frame{Type: wire.TypeSend, Text: text}
	return string(f.Append(nil, wire.Routing{SessionKey: conversation, ConversationID: conversation}))
}

// child is this test binary as a plugin, under a stock client of go-plugin.
type child struct {
	*goplugin.Client
	cmd    *exec.Cmd
	bridge *grpcconn.Plugin
	stderr *logs
}

// launch starts a process and does the handshake. The test's end kills it.
func launch(t *testing.T, role string, files ...*os.File) *child {
	t.Helper()
	c := &child{cmd: process(t, role), stderr: &logs{}}
	c.cmd.ExtraFiles = files
	c.cmd.Env = append(c.cmd.Env, goplugin.EnvUnixSocketDir+"="+t.TempDir())
	c.Client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: grpcconn.Handshake(), VersionedPlugins: grpcconn.PluginSets(), GRPCDialOptions: grpcconn.DialOptions(),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC}, AutoMTLS: true, SkipHostEnv: true,
		Cmd: c.cmd, Stderr: c.stderr, Logger: hclog.NewNullLogger(),
	})
	t.Cleanup(func() {
		c.Kill()
		if text := c.stderr.String(); strings.Contains(text, testToken) || strings.Contains(text, "DATA RACE") {
			t.Errorf("standard error holds the token or a race:\n%s", text)
		}
	})
	conn, err := c.Client.Client()
	if err != nil {
		t.Fatalf("start: %v\n%s", err, c.stderr)
	}
	bridge, err := conn.Dispense(grpcconn.PluginName)
	if err != nil {
		t.Fatal(err)
	}
	c.bridge = bridge.(*grpcconn.Plugin)
	return c
}

// process is this test binary in another role. The token is a trap: a plugin
// must not use it.
func process(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestProcess$")
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "PONTOON_TOKEN="+testToken, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// perch is a registered stream as the host has it.
type perch struct {
	stream *grpcconn.Stream
	first  string // the register frame
	frames chan string
	ended  chan error
}

func (c *child) configured(t *testing.T) *perch {
	t.Helper()
	if err := c.bridge.Configure(t.Context(), "parrots", []byte(parrotConfig), "test"); err != nil {
		t.Fatalf("configure: %v\n%s", err, c.stderr)
	}
	return c.attach(t)
}

// attach opens a stream, accepts the register frame and reads on.
func (c *child) attach(t *testing.T) *perch {
	t.Helper()
	stream, err := c.bridge.Attach(t.Context())
	if err != nil {
		t.Fatalf("attach: %v\n%s", err, c.stderr)
	}
	p := &perch{stream: stream, frames: make(chan string, 10_000), ended: make(chan error, 1)}
	registered, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			frame, err := stream.Read()
			switch {
			case err != nil:
				p.ended <- err
				return
			case p.first == "":
				p.first = string(frame)
				close(registered)
			default:
				p.frames <- string(frame)
			}
		}
	}()
	t.Cleanup(func() {
		_ = stream.Close(wire.CloseDraining, "test is over")
		await.Value(t, "end of the stream", done)
	})
	await.Value(t, "register", registered)
	p.write(t, string(wire.RegisterAck{OK: true}.Append(nil)))
	return p
}

func (p *perch) write(t *testing.T, frame string) {
	t.Helper()
	if err := p.stream.Write([]byte(frame)); err != nil {
		t.Fatalf("host writes: %v", err)
	}
}

func (p *perch) wantSaid(t *testing.T, text string) {
	t.Helper()
	if got := await.Value(t, "frame", p.frames); got != said(text) {
		t.Errorf("frame is %.200s, want %.200s", got, said(text))
	}
}

func (p *perch) wantNormalClose(t *testing.T) {
	t.Helper()
	var closed *transport.CloseError
	if err := await.Value(t, "end of the stream", p.ended); !errors.As(err, &closed) || closed.Code != wire.CloseNormal {
		t.Errorf("host saw %v, want close code 1000", err)
	}
}

func (c *child) wantExit(t *testing.T, status int) {
	t.Helper()
	await.Until(t, "exit", c.Exited)
	if got := c.cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("exit status %d, want %d:\n%s", got, status, c.stderr)
	}
}

func TestPluginTalks(t *testing.T) {
	c := launch(t, "parrot")
	p := c.configured(t)
	register, bad := wire.DecodeInbound([]byte(p.first))
	if bad != nil || register.Type != wire.TypeRegister || register.Register.Platform != "test" || strings.Contains(p.first, "oken") {
		t.Errorf("first frame is %s (%v), want register without a token", p.first, bad)
	}
	p.wantSaid(t, "Hello") // of the configuration
	p.write(t, send(conversation, "you"))
	p.wantSaid(t, "echo: you")
	if err := c.bridge.Ping(t.Context()); err != nil {
		t.Errorf("health check: %v", err)
	}
}

// The handshake has the first line of standard output; all else is the adapter's.
func TestPluginPrints(t *testing.T) {
	p := launch(t, "parrot").configured(t)
	p.wantSaid(t, "Hello")
	p.write(t, send(conversation, "print"))
	p.wantSaid(t, "echo: print")
}

func TestPluginTakesALargeFrame(t *testing.T) {
	p := launch(t, "parrot").configured(t)
	p.wantSaid(t, "Hello")
	text := strings.Repeat("x", wire.MaxFrame-max(len(send(conversation, "")), len(said("echo: "))))
	p.write(t, send(conversation, text))
	p.wantSaid(t, "echo: "+text)
}

func TestPluginConfiguration(t *testing.T) {
	t.Run("no JSON", func(t *testing.T) {
		var refused *grpcconn.ConfigError
		if err := launch(t, "parrot").bridge.Configure(t.Context(), "c", []byte("{"), ""); !errors.As(err, &refused) {
			t.Errorf("Configure = %v, want a ConfigError", err)
		}
	})
	t.Run("unknown key", func(t *testing.T) {
		c := launch(t, "parrot")
		if err := c.bridge.Configure(t.Context(), "c", []byte(`{"what":"secret"}`), ""); err != nil {
			t.Fatal(err)
		}
		p := c.attach(t)
		_ = await.Value(t, "end of the stream", p.ended)
		c.wantExit(t, transport.ExitConfig)
		if text := c.stderr.String(); !strings.Contains(text, `unknown key "what"`) || strings.Contains(text, "secret") {
			t.Errorf("standard error names no key, or shows the value:\n%s", text)
		}
	})
}

func TestPluginEndsOnSIGTERM(t *testing.T) {
	for name, attached := range map[string]bool{"attached": true, "not yet": false} {
		t.Run(name, func(t *testing.T) {
			c := launch(t, "parrot")
			var p *perch
			if attached {
				p = c.configured(t)
				p.wantSaid(t, "Hello")
			}
			if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if attached {
				p.wantSaid(t, "last words")
				p.wantNormalClose(t)
			}
			c.wantExit(t, 0)
		})
	}
}

// docs/plugins.md: Shutdown comes when nobody listens any more.
func TestPluginEndsOnShutdown(t *testing.T) {
	c := launch(t, "parrot")
	p := c.configured(t)
	p.wantSaid(t, "Hello")
	c.Kill() // asks first
	c.wantExit(t, 0)
}

// Only 1013 and 4008 are followed by another Attach.
func TestPluginEndsWithItsStream(t *testing.T) {
	c := launch(t, "parrot")
	p := c.configured(t)
	p.wantSaid(t, "Hello")
	_ = p.stream.Close(wire.CloseDraining, "enough")
	c.wantExit(t, 1)
	if text := c.stderr.String(); !strings.Contains(text, "the host ended the stream: closed by the peer with code 1001: enough") {
		t.Errorf("standard error does not say why:\n%s", text)
	}
}

func TestPluginIsAttachedAgain(t *testing.T) {
	c := launch(t, "parrot")
	p := c.configured(t)
	p.wantSaid(t, "Hello")
	first := p.first
	for range 3 {
		_ = p.stream.Close(wire.CloseOverload, "later")
		_ = await.Value(t, "end of the stream", p.ended)
		p = c.attach(t)
		if p.first != first {
			t.Errorf("registers as %s, before as %s", p.first, first)
		}
		p.write(t, send(conversation, "again"))
		p.wantSaid(t, "echo: again") // and no greeting: its Run went on
	}
}

func TestPluginByHand(t *testing.T) {
	for name, env := range map[string]string{"no cookie": "", "another": transport.CookieKey + "=1"} {
		t.Run(name, func(t *testing.T) {
			cmd := process(t, "parrot")
			cmd.Env = append(cmd.Env, "PONTOON_TOKEN=", env)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "let a host run this as a plugin") {
				t.Errorf("exit status %d, want 2 and advice:\n%s%s", got, &stdout, &stderr)
			}
		})
	}
}

// TestPluginNobodyCanTrust: without the host's certificate it serves nobody, and
// without a place for its socket neither.
func TestPluginNobodyCanTrust(t *testing.T) {
	for name, c := range map[string]struct{ certificate, directory, want string }{
		"errNoCertificate": {"", t.TempDir(), "PLUGIN_CLIENT_CERT"},
		"errNoDirectory":   {hostPEM, "/nowhere", "open the plugin's socket"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := process(t, "parrot")
			cmd.Env = append(cmd.Env, transport.CookieKey+"="+transport.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1",
				"PLUGIN_CLIENT_CERT="+c.certificate, goplugin.EnvUnixSocketDir+"="+c.directory)
			var stdout, stderr logs
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || stdout.String() != "" || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("%v with %q and %q, want exit status 1 and a word on %q", err, &stdout, &stderr, c.want)
			}
		})
	}
}

// hostPEM is a certificate, of nobody.
const hostPEM = `-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUSbbTPNPLOvRjyJ/WfQfJ82KC8Q0wCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBaDAgFw0yNjExMjIxNDU3NDVaGA8yMTI2MTAyOTE0NTc0NVow
DDEKMAgGA1UEAwwBaDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNPOQUjvFjaP
P94BFE5UtxfVDroXvOaRJ+Gy6BbPqSyjyI/Ci3eVjQgsqvtkka6dpN5kMn5ATw+f
i0V4YYMjP6OjUzBRMB0GA1UdDgQWBBT9D0L/uaJyYIoPysX57Ai3w2NCkjAfBgNV
HSMEGDAWgBT9D0L/uaJyYIoPysX57Ai3w2NCkjAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIQDDiRNA9OBbEy1RMmsKBMWslY8+3aCe8BVXC0uuY/VC
QwIgfOBUYo9RgDgaXkkVWwi8TyxygooTERzH3iG1DxTX+DQ=
-----END CERTIFICATE-----
`

func TestPluginFlags(t *testing.T) {
	getenv := func(string) string { return transport.CookieValue }
	for _, args := range [][]string{{"x", "--what"}, {"x", "--url=http://h", "what"}} {
		var stderr logs
		if got := Start(t.Context(), "test", &parrot{}, args, getenv, &stderr); got != 2 || !strings.Contains(stderr.String(), "what") {
			t.Errorf("%q: exit status %d, want 2 with what is wrong:\n%s", args, got, &stderr)
		}
	}
}

func TestPluginEndsWithItsParent(t *testing.T) {
	for _, role := range []string{"orphan", "stubborn orphan"} {
		t.Run(role, func(t *testing.T) {
			alive, line, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = alive.Close() }()
			parent := process(t, "parent of "+role)
			parent.Env = append(parent.Env, "TMPDIR="+t.TempDir())
			parent.ExtraFiles = []*os.File{line}
			stdout, err := parent.StdoutPipe()
			if err == nil {
				err = parent.Start()
			}
			_ = line.Close()
			if err != nil {
				t.Fatal(err)
			}
			said, err := bufio.NewReader(stdout).ReadString('\n')
			_ = parent.Process.Kill()
			killed := time.Now()
			_ = parent.Wait()
			if said != "ready\n" {
				t.Fatalf("parent said %q, %v", said, err)
			}
			// 0.75 s are promised, and a busy machine gets more; without a watch it would
			// wait 30 s for a host.
			if err := alive.SetReadDeadline(killed.Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := alive.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("20 s after its parent's death the plugin lives: %v", err)
			}
		})
	}
}
