package config

import (
	"encoding/json"
	"time"
)

// Plugin is one entry of plugins.yaml: an adapter that the host runs.
type Plugin struct {
	Name    string   // also the channel's
	Command []string // the program, absolute or a name to look up, and its arguments
	SHA256  string   // of the program or of its tree, 64 hex digits; "" = not pinned
	Enabled bool
	Env     []string        // names of the host's environment that it gets
	Config  json.RawMessage // a JSON object, ${…} filled in; nil = none. May hold secrets: never log it
	Restart Restart
	Limits  Limits
	Policy  PluginPolicy

	Dir    string // where it runs: the directory of the file
	Source string // FILE:LINE of the entry, for messages
}

// Restart says how a failed plugin is started again.
type Restart struct {
	Backoff         time.Duration // before the first restart, jittered
	MaxBackoff      time.Duration // before any later one
	QuarantineAfter int           // failures in a window after which it stays down
}

// Limits bound what a plugin may use.
type Limits struct {
	Memory int64 // bytes
}

// PluginPolicy is what the entry says of its channel; nil = the channel keeps
// what it has.
type PluginPolicy struct {
	Accept []string // nil = not said, empty = all
	Agent  *string
	Queue  *bool
}
