package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// notifier tells the service manager how the host is, as sd_notify(3) does. Where
// nobody wants to know it does nothing.
type notifier struct {
	socket string // "" = nobody
	log    *slog.Logger
}

func openNotifier(log *slog.Logger) notifier {
	at := os.Getenv("NOTIFY_SOCKET")
	if !strings.HasPrefix(at, "/") && !strings.HasPrefix(at, "@") { // the second is Linux's abstract one
		at = ""
	}
	return notifier{at, log}
}

func (n notifier) ready()    { n.tell("READY=1\nSTATUS=Serving") }
func (n notifier) stopping() { n.tell("STOPPING=1\nSTATUS=Draining") }

func (n notifier) tell(text string) {
	if n.socket == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(text))
		_ = c.Close()
	}
	if err != nil {
		n.log.Warn("service manager not told", "what", strings.SplitN(text, "\n", 2)[0], "error", err)
	}
}

// watchdog shows that the host lives, each time that alive returns, as often as
// the service manager asks for, until ctx ends.
func (n notifier) watchdog(ctx context.Context, alive func()) {
	if n.socket == "" {
		return
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return
	}
	limit, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || limit <= 0 {
		return
	}
	tick := time.NewTicker(max(time.Duration(limit)*time.Microsecond/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			alive()
			n.tell("WATCHDOG=1")
		}
	}
}

// maxCredential bounds a secret that the service manager hands over, in bytes.
const maxCredential = 64 << 10

// secretOf is a secret of serve: the environment variable of the name, else the
// file of that name which systemd made for this service (LoadCredential=).
func secretOf(name string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return ""
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || len(b) > maxCredential {
		return ""
	}
	return strings.TrimRight(string(b), "\r\n")
}
