// Package protocol holds what programs in any language read of the Bridge Protocol and
// of the agents' one: JSON Schemas, golden frames, and tables of odd ones. README.md
// says what each file is.
package protocol

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
)

//go:embed schemas/*.json
var schemas embed.FS

// Schemas are the JSON Schemas by file name. Those that refer to others do so by it.
func Schemas() fs.FS {
	sub, _ := fs.Sub(schemas, "schemas") // fails for a path that is none
	return sub
}

//go:embed malformed.json
var malformed []byte

//go:embed lenient.json
var lenient []byte

// Directions of a frame.
const (
	AdapterToHost = "adapter-to-host"
	HostToAdapter = "host-to-adapter"
	AgentToHost   = "agent-to-host"
)

// Session is what a frame of a table comes in.
type Session struct {
	Name      string `json:"name"`
	Direction string `json:"direction"`
	Protocol  string `json:"protocol"` // that was negotiated
	// Capabilities are those of the session beside text; nil = all of the protocol's.
	Capabilities *[]string `json:"capabilities,omitempty"`
	Frame        string    `json:"frame"`
}

// Malformed is a frame that the host refuses by an error frame.
type Malformed struct {
	Session
	Code  string `json:"code"`
	Field string `json:"field"`         // what the error's message names first
	Ref   string `json:"ref,omitempty"` // the error's ref
}

// Lenient is an unusual frame that must be understood.
type Lenient struct {
	Session
	Means string `json:"means"` // the same frame, in canonical form
}

// MalformedFrames is the table of malformed.json.
func MalformedFrames() ([]Malformed, error) { return table[Malformed](malformed) }

// LenientFrames is the table of lenient.json.
func LenientFrames() ([]Lenient, error) { return table[Lenient](lenient) }

func table[T any](raw []byte) (rows []T, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&rows); err != nil {
		return nil, fmt.Errorf("read table of frames: %w", err)
	}
	return rows, nil
}
