package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 15 * time.Second
)

// listensOn is what a server prints before its url.
const listensOn = " listens on "

// child is a server in a process of its own. It ends with stop or kill, one of
// which must be called.
type child struct {
	cmd   *exec.Cmd
	url   string
	data  string // of a host
	lines chan string
	ended chan struct{}
	said  tail
}

func spawn(exe string, args ...string) (*child, error) {
	cmd := exec.Command(exe, args...)
	bindToParent(cmd)
	return start(cmd)
}

func start(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, lines: make(chan string, 1), ended: make(chan struct{})}
	c.cmd.Stderr = &c.said
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	go func() { // stop and kill wait for ended
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			if _, url, ok := strings.Cut(scan.Text(), listensOn); ok {
				c.lines <- url
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
		_ = c.cmd.Wait() // how it ended is told by what it said
		close(c.ended)
	}()
	return c, nil
}

// ready waits until the server listens.
func (c *child) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case c.url = <-c.lines:
		return nil
	case <-c.ended:
		return fmt.Errorf("server ended before it listened: %s", c.said.String())
	case <-ctx.Done():
		return fmt.Errorf("server does not listen: %w", ctx.Err())
	}
}

func startHost(ctx context.Context, exe, data string, flags ...string) (*child, error) {
	c, err := spawnHost(exe, data, flags...)
	if err != nil {
		return nil, err
	}
	return c, c.readyOrKill(ctx)
}

// spawnHost starts a host in its data directory: where this program was started there
// may be a plugins.yaml, whose plugins would run beside what is measured.
func spawnHost(exe, data string, flags ...string) (*child, error) {
	return spawnHostWith(nil, exe, data, flags...)
}

// spawnHostWith is spawnHost with variables beside those of this process.
func spawnHostWith(env []string, exe, data string, flags ...string) (*child, error) {
	data, err := filepath.Abs(data)
	if err != nil {
		return nil, fmt.Errorf("find data directory: %w", err)
	}
	cmd := exec.Command(exe, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, flags...)...)
	cmd.Dir, cmd.Env = data, append(os.Environ(), env...)
	bindToParent(cmd)
	c, err := start(cmd)
	if err == nil {
		c.data = data
	}
	return c, err
}

// profiled are the flags of a host that leaves its profiles in dir; "" = none.
func profiled(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(dir) // the host's working directory is another
	return []string{"--profile", dir}, err
}

func startRaw(ctx context.Context) (*child, error) {
	c, err := spawnRole(roleRawEcho)
	if err != nil {
		return nil, err
	}
	return c, c.readyOrKill(ctx)
}

func (c *child) readyOrKill(ctx context.Context) error {
	err := c.ready(ctx)
	if err != nil {
		c.kill()
	}
	return err
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// bridge is the url of its WebSocket.
func (c *child) bridge() string { return "ws" + strings.TrimPrefix(c.url, "http") + wire.Path }

// rest is a client of the host's API.
func (c *child) rest() (*rest, error) {
	key, err := adminKey(c.data)
	if err != nil {
		return nil, err
	}
	return newREST(c.url, key), nil
}

// adminKey is the key that the host made for its operator in its data directory.
func adminKey(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		return "", fmt.Errorf("read admin key: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// kill ends the process in the middle of whatever it does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// stop ends the process in order, or by force if that takes too long.
func (c *child) stop() {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, errors.ErrUnsupported) {
		_ = c.cmd.Process.Kill()
	}
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		c.kill()
	}
}

// tail keeps the end of what a process says.
type tail struct {
	mu sync.Mutex // guards b
	b  []byte
}

const tailSize = 1024

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-tailSize):]...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
