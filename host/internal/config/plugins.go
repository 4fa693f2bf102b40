package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// Plugin is one entry of plugins.yaml: an adapter that the host runs.
type Plugin struct {
	Name    string   // also the channel's
	Command []string // the program, absolute or "pontoon" (the host's own binary), and its arguments; ${…} filled in
	SHA256  string   // of the program or of its tree, 64 hex digits; "" = not pinned
	Enabled bool
	Env     []string        // names of the host's environment that it gets
	Config  json.RawMessage // a JSON object, ${…} filled in; nil = none. May hold secrets: never log it
	Restart Restart
	Limits  Limits
	Sandbox Sandbox
	Policy  PluginPolicy

	Secrets []string // names of the secret store that Config uses
	Hidden  []string // what of Config nobody may see, wherever the plugin writes it: never log it

	Lookup  string   // what was looked up in PATH for Command[0]: an interpreter, maybe; "" = it was a path, or "pontoon"
	Written []string // Command as the file has it: ${…} not filled in, for people to see
	Dir     string   // where it runs: the directory of the file, absolute
	Source  string   // FILE:LINE of the entry, for messages
}

// Restart says how a failed plugin is started again.
type Restart struct {
	Backoff         time.Duration // before the first restart, jittered
	MaxBackoff      time.Duration // before any later one
	QuarantineAfter int           // failures in a window after which it stays down
}

// Limits bound what a plugin may use.
type Limits struct {
	Memory    int64 // bytes
	Processes int   // and threads
}

// PluginPolicy is what the entry says of its channel; nil = the channel keeps
// what it has.
type PluginPolicy struct {
	Accept    []string // nil = not said, empty = all
	Agent     *string
	Queue     *bool
	Retention *int // days that messages are kept; 0 = for ever
}

// OwnBinary as the first word of a command means the running host.
const OwnBinary = "pontoon"

// DefaultMemory is far more than an adapter needs and keeps one that leaks from
// taking a small machine down.
const DefaultMemory int64 = 1 << 30

// DefaultProcesses is far more than an adapter needs; a browser has 200.
const DefaultProcesses = 512

// DefaultRestart is that of an entry that says nothing.
func DefaultRestart() Restart {
	return Restart{Backoff: time.Second, MaxBackoff: time.Minute, QuarantineAfter: 5}
}

// SameProcess reports whether both entries ask for the same process, so that
// one that runs may go on. Of Env only the names count: the host's environment
// does not change while it runs.
func (p Plugin) SameProcess(o Plugin) bool {
	return p.Name == o.Name && p.SHA256 == o.SHA256 && p.Lookup == o.Lookup && p.Dir == o.Dir &&
		p.Restart == o.Restart && p.Limits == o.Limits && p.Sandbox.equal(o.Sandbox) &&
		slices.Equal(p.Command, o.Command) && slices.Equal(p.Env, o.Env) && bytes.Equal(p.Config, o.Config)
}

// Equal reports whether both entries ask for the same in every respect. Where
// they are written, and how the command was, makes no difference.
func (p Plugin) Equal(o Plugin) bool {
	return p.Enabled == o.Enabled && p.Policy.equal(o.Policy) && p.SameProcess(o)
}

func (p PluginPolicy) equal(o PluginPolicy) bool {
	return (p.Accept == nil) == (o.Accept == nil) && slices.Equal(p.Accept, o.Accept) &&
		same(p.Agent, o.Agent) && same(p.Queue, o.Queue) && same(p.Retention, o.Retention)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
