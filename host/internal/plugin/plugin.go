// Package plugin holds what the host says of an adapter that it runs as a process:
// data alone, for those who run plugins and those who show them.
package plugin

import (
	"errors"
	"time"
)

// Kind is that of the channels that plugins own.
const Kind = "plugin"

// State is where a plugin's process is in its life.
type State string

// The states.
const (
	Disabled    State = "disabled"    // by plugins.yaml or by an operator
	Starting    State = "starting"    // launched, not serving yet
	Running     State = "running"     // serving
	Backoff     State = "backoff"     // failed, waits for its next start
	Quarantined State = "quarantined" // failed too often, or can't work: waits for an operator
	Stopping    State = "stopping"
)

// States lists them.
var States = [...]State{Disabled, Starting, Running, Backoff, Quarantined, Stopping}

// Status is what is known of one plugin.
type Status struct {
	Name      string
	State     State
	Reason    string    // why it is not running, or last was not; "" = all is well
	Since     time.Time // when the state began
	Pid       int       // 0 = no process
	Restarts  int       // since the host started
	NextStart time.Time // while in Backoff
	Command   []string
	Pinned    bool     // sha256 is given
	SHA256    string   // of what runs or ran last, if pinned
	Memory    int64    // limit in bytes
	LimitBy   string   // what enforces it: "cgroup", "rlimit", "none"; "" = it never ran
	Sandbox   string   // "full", "partial", "none" or "off"; "" = it never ran
	Wanted    string   // what its entry says of that: "auto", "require" or "off"
	Landlock  int      // version of the kernel's Landlock that it is kept by; 0 = none
	Open      []string // what the sandbox leaves open, for people
	User      string   // whom it runs as; "" = the host's user
	Processes int      // limit of processes and threads
	Source    string   // FILE:LINE in plugins.yaml
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
	ErrUnknown  = errors.New("no such plugin")
	ErrByFile   = errors.New("disabled by plugins.yaml")
	ErrDisabled = errors.New("disabled: enable it first")
)
