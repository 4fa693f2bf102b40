package webchat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

// within bounds everything that a test waits for.
const within = await.Limit

// eventually waits for a condition; what says which.
var eventually = await.Until

// hostBinary is the real host, built once.
var hostBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "webchat-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		hostBinary = filepath.Join(dir, "pontoon")
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", hostBinary, "../../../host/cmd/pontoon")
		if text, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the host: %v\n%s", err, text)
			return 1
		}
		code := m.Run()
		closeBrowser()
		http.DefaultClient.CloseIdleConnections()
		if code == 0 {
			code = leaks.Code()
		}
		return code
	}())
}

// buffer collects output while it is written.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// host is a running `pontoon serve`, a process of its own.
type host struct {
	t              *testing.T
	dir            string // where it runs
	data, url, key string
	errs           *buffer
	cmd            *exec.Cmd
	exited         chan struct{}
}

var listensOn = regexp.MustCompile(`listens on (\S+)\n`)

func startHost(t *testing.T) *host {
	t.Helper()
	return startHostIn(t, t.TempDir()) // no plugins.yaml there
}

// startHostIn starts it in a directory that may hold plugins.yaml.
func startHostIn(t *testing.T, dir string) *host {
	t.Helper()
	h := &host{t: t, dir: dir, data: filepath.Join(dir, "data")}
	h.start("127.0.0.1:0")
	t.Cleanup(h.kill)
	return h
}

func (h *host) start(listen string) {
	h.t.Helper()
	var out, errs buffer
	h.errs = &errs
	h.cmd = exec.Command(hostBinary, "serve", "--data", h.data, "--listen", listen)
	h.cmd.Dir = h.dir
	h.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.t.TempDir()}
	h.cmd.Stdout, h.cmd.Stderr = &out, &errs
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	exited := make(chan struct{})
	h.exited = exited
	go func() {
		defer close(exited)
		_ = h.cmd.Wait() // killed in the end: its status says nothing
	}()
	eventually(h.t, "the host listens", func() bool {
		select {
		case <-exited:
			h.t.Fatalf("the host ended: %s", errs.String())
		default:
		}
		found := listensOn.FindStringSubmatch(out.String())
		if found == nil {
			return false
		}
		h.url = found[1]
		resp, err := http.Get(h.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	key, err := os.ReadFile(filepath.Join(h.data, "admin.key"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.key = strings.TrimSpace(string(key))
}

// kill ends the host as a crash would.
func (h *host) kill() {
	_ = h.cmd.Process.Kill() // it may have ended
	<-h.exited
}

// again starts it on the same data and address.
func (h *host) again() {
	h.t.Helper()
	h.start(strings.TrimPrefix(h.url, "http://"))
}

// must calls the API, which must succeed; v may be nil.
func (h *host) must(v any, method, path string, body any) {
	h.t.Helper()
	status, text := h.try(method, path, body)
	if status >= 300 {
		h.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if v != nil {
		if err := json.Unmarshal(text, v); err != nil {
			h.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

func (h *host) try(method, path string, body any) (int, []byte) {
	h.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	req, err := http.NewRequest(method, h.url+"/api/v1"+path, bytes.NewReader(b))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, text
}

// send lets the operator send into a conversation.
func (h *host) send(conversation string, message map[string]any) {
	h.t.Helper()
	message["conversation_id"] = conversation
	h.must(nil, "POST", "/channels/web/messages", message)
}

// rig is the adapter in this process, attached to a host.
type rig struct {
	*host
	url     string // of the page, without the last slash
	log     *buffer
	adapter *Adapter
	token   string
	stop    context.CancelFunc
	ended   chan error
}

var opensAt = regexp.MustCompile(`webchat is open at (http://[^/"]+)/`)

// startRig starts host and adapter. config are further keys, such as `,"title":"T"`.
func startRig(t *testing.T, config string) *rig {
	t.Helper()
	r := &rig{host: startHost(t)}
	var made struct{ Token string }
	r.must(&made, "POST", "/channels", map[string]any{"name": "web"})
	r.token = made.Token
	r.run(`{"listen":"127.0.0.1:0"` + config + `}`)
	t.Cleanup(func() { r.halt() })
	return r
}

// run starts an adapter, as a process of its own would be.
func (r *rig) run(config string) {
	r.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r.log, r.adapter, r.stop, r.ended = &buffer{}, New(), stop, make(chan error, 1)
	o := sdk.Options{URL: r.host.url, Token: r.token, Config: json.RawMessage(config), Log: slog.New(slog.NewTextHandler(r.log, nil))}
	adapter, ended := r.adapter, r.ended
	go func() { ended <- sdk.Run(ctx, "webchat", adapter, o) }()
	eventually(r.t, "the page is open", func() bool {
		if found := opensAt.FindStringSubmatch(r.log.String()); found != nil {
			r.url = found[1]
		}
		return r.url != "" && strings.Contains(r.log.String(), "webchat is open")
	})
}

// halt ends the adapter and waits for it.
func (r *rig) halt() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("the adapter ended with %v", err)
		}
		r.ended <- nil // for a second halt
	case <-time.After(within):
		r.t.Errorf("the adapter does not end; log:\n%s", r.log.String())
	}
}

// address is what the adapter listens on.
func (r *rig) address() string { return strings.TrimPrefix(r.url, "http://") }
