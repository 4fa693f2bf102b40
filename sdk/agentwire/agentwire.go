// Package agentwire is the protocol of agents that dial in: the frames of the
// WebSocket at Path, with their JSON codec. Error codes, close codes, limits of
// frames and the rules by which fields are read are those of adapters (package
// wire). docs/agents.md says what the frames mean.
//
// Evolution rules: new fields are optional, and unknown ones are ignored by both
// ends; a new type of the host's is ignored by an older agent.
package agentwire

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Path is where the host upgrades an agent's WebSocket.
const Path = "/api/v1/agents/ws"

// Protocol is the version that this package speaks. A host answers whatever an
// agent asks for with the newest that it has.
const Protocol = "1.0"

// Window is how many turns an agent may have that have not ended; more wait in
// the host.
const Window = 64

// HelloTimeout is how long after the upgrade hello must be there.
const HelloTimeout = 10 * time.Second

// The reasons that a failed hello_ack gives.
const (
	RefusedMissingKey = "missing key"
	RefusedInvalidKey = "invalid key" // unknown, revoked, of another agent, or the agent is disabled: one answer
	RefusedFirstFrame = "first frame must be type=hello"
)

// Type is a frame's type tag.
type Type string

// Agent → host.
const (
	TypeHello      Type = "hello"
	TypeMessage    Type = "message"
	TypeStream     Type = "stream"
	TypeStreamEnd  Type = "stream_end"
	TypeTyping     Type = "typing"
	TypeCard       Type = "card"
	TypeButtons    Type = "buttons"
	TypeUpdate     Type = "update"
	TypeTransfer   Type = "transfer"
	TypeTurnEnd    Type = "turn_end"
	TypeMessageAck Type = "message_ack" // in both directions
	TypePing       Type = "ping"        // likewise
	TypePong       Type = "pong"        // likewise
)

// Host → agent.
const (
	TypeHelloAck Type = "hello_ack"
	TypeTurn     Type = "turn"
	TypeCancel   Type = "cancel"
	TypeError    Type = "error"
)

// encode writes a frame: no white space, and nothing escaped that JSON does not
// demand, as wire does it.
func encode(frame any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(frame); err != nil {
		panic("agentwire: " + err.Error()) // structs of strings, and JSON that was read as such
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// bare is a frame without fields.
func bare(t Type) []byte { return wire.AppendString(nil, string(t)) }
