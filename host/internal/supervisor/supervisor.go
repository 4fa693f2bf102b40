// Package supervisor runs adapters as processes of their own: it starts them,
// watches them, restarts them, and lets none of them harm the host or another.
// It is the only user of go-plugin in the host.
package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
)

// State is where a plugin's process is in its life.
type State string

// The states. Settled are all but Starting of the first attempt.
const (
	Disabled    State = "disabled"    // by plugins.yaml or by an operator
	Starting    State = "starting"    // launched, not serving yet
	Running     State = "running"     // serving
	Backoff     State = "backoff"     // failed, waits for its next start
	Quarantined State = "quarantined" // failed too often, or can't work: waits for an operator
	Stopping    State = "stopping"
)

// Status is what is known of one plugin.
type Status struct {
	Name      string
	State     State
	Reason    string    // why it is not running; "" while all is well
	Since     time.Time // when the state began
	Pid       int       // 0 = no process
	Restarts  int       // since the host started
	NextStart time.Time // while in Backoff
	Command   []string
	Pinned    bool   // sha256 is given
	SHA256    string // of what runs or ran last, if pinned
	Memory    int64  // limit in bytes
	LimitBy   string // what enforces it: "cgroup", "rlimit", "none"
	Source    string // FILE:LINE in plugins.yaml
}

// Line is one line that a plugin wrote.
type Line struct {
	Seq    int64 // ascending per plugin
	At     time.Time
	Stream string // "stdout", "stderr" or "host" (what the host noted)
	Text   string // valid UTF-8, at most 4 KiB, no line end
}

// Changes is what a reload did, by plugin name.
type Changes struct {
	Added, Removed, Changed, Unchanged []string
}

// Errors of the operations.
var (
	ErrUnknown = errors.New("no such plugin")
	ErrByFile  = errors.New("disabled by plugins.yaml")
)

// Supervisor owns the plugins of one host.
type Supervisor struct{}

// Serve runs the plugins until ctx ends, and returns when all are gone.
func (s *Supervisor) Serve(ctx context.Context) error { return nil }

// Settled reports whether every plugin is running, disabled, quarantined, or
// has failed its first attempt; else it names one that is not.
func (s *Supervisor) Settled() (ok bool, waiting string) { return true, "" }

// Reload reads plugins.yaml again and starts, stops and restarts what changed.
// An error changes nothing.
func (s *Supervisor) Reload(ctx context.Context) (Changes, error) { return Changes{}, nil }

// List is every plugin of the file, in its order.
func (s *Supervisor) List() []Status { return nil }

// Status is one plugin, by name. Error: ErrUnknown.
func (s *Supervisor) Status(name string) (Status, error) { return Status{}, ErrUnknown }

// Logs returns up to n of the newest kept lines after seq, oldest first, and a
// channel that is closed when there are more.
func (s *Supervisor) Logs(name string, after int64, n int) ([]Line, <-chan struct{}, error) {
	return nil, nil, ErrUnknown
}

// Restart stops the plugin if it runs and starts it, also out of quarantine.
// It returns when the start has begun. Errors: ErrUnknown, ErrByFile, or that it
// is disabled.
func (s *Supervisor) Restart(name string) error { return ErrUnknown }

// Enable and Disable start and stop the plugin for good, across restarts of the
// host: they are its channel's. Errors: ErrUnknown; Enable: ErrByFile.
func (s *Supervisor) Enable(ctx context.Context, name string) error { return ErrUnknown }

// Disable is the opposite of Enable.
func (s *Supervisor) Disable(ctx context.Context, name string) error { return ErrUnknown }

// Verify checks the plugin's program as a start would, without starting it: nil
// if it may run. It says what it found.
func (s *Supervisor) Verify(name string) (found string, err error) { return "", ErrUnknown }

// Channel tells the supervisor that an operator changed a plugin's channel by
// other ways (enabled or not).
func (s *Supervisor) ChannelChanged(name string, enabled bool) {}

// Plugin is an entry of the file, by name.
func (s *Supervisor) Plugin(name string) (config.Plugin, bool) { return config.Plugin{}, false }
