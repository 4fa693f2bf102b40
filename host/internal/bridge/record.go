package bridge

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// ring is where the session's frames are kept, made with the first one behind
// register and its answer; nil = none are kept.
func (n *Session) ring() *framelog.Ring {
	ring := n.frames.Load()
	if ring == nil {
		if ring = n.slots.Frames.Ring(n.place.channel); ring != nil {
			n.frames.Store(ring)
		}
	}
	return ring
}

// record keeps a received frame for who debugs the adapter, with what was said to
// it. in is nil if it could not be read.
func (n *Session) record(frame []byte, in *wire.Inbound, err *wire.Error) {
	verdict, code := framelog.Accepted, wire.Code("")
	switch {
	case err != nil:
		verdict, code = framelog.Refused, err.Code
	case in.Lenient&^n.lenient != 0:
		verdict, code = framelog.Lenient, n.nameLenient(in.Lenient)
	}
	if ring := n.ring(); ring != nil {
		register := in != nil && in.Type == wire.TypeRegister // it has a token
		ring.Record(n.conn.Heard(), framelog.In, frame, verdict, code, register)
	}
}

// nameLenient tells the operator, once a session and field, that the adapter breaks the
// protocol in a way that is borne. The first of the fields goes into the record.
func (n *Session) nameLenient(read wire.Lenient) wire.Code {
	names := (read &^ n.lenient).Names()
	n.lenient |= read
	n.slots.Log.Warn("adapter breaks the protocol: what is no string is read as one, or as absent, and a text that is absent as empty",
		"channel", n.place.name, "fields", names)
	return wire.Code(names[0])
}

// What is looked through for typos: enough for who writes an adapter, and nothing for one
// that has run for a while.
const (
	typoFrames = 256 // of a session
	maxTypos   = 16  // that it is told of
)

// tellTypos tells the adapter, once a session and name, which field of a frame of 1.1
// looks like one that was meant. The frame counts without it, so the error names no frame.
func (n *Session) tellTypos(frame []byte) {
	if n.protocol == wire.V10 || n.looked == typoFrames {
		return
	}
	n.looked++
	for _, typo := range wire.Typos(frame) {
		if len(n.typos) < maxTypos && !slices.Contains(n.typos, typo.Found) {
			n.typos = append(n.typos, typo.Found)
			e := wire.Error{Code: wire.CodeUnknownField, Message: typo.String()}
			n.answer(e.Append(nil))
		}
	}
}

// Repeated implements hub.Repeater.
func (n *Session) Repeated(ref string) { n.frames.Load().Repeat(ref) }

// recordSent keeps frames that were written, from at on.
func (n *Session) recordSent(at time.Time, all [][]byte, err error) {
	ring := n.frames.Load()
	if ring == nil {
		return
	}
	verdict := framelog.Written
	if err != nil {
		verdict = framelog.Broken
	}
	for _, f := range all {
		ring.Record(at, framelog.Out, f, verdict, "", false)
	}
}

// recordEnd keeps why the connection ended, as a frame of its own.
func (n *Session) recordEnd(err error) {
	ring := n.frames.Load()
	if ring == nil || err == nil {
		return
	}
	frame, merr := json.Marshal(struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}{"close", err.Error()})
	if merr == nil {
		ring.Record(time.Now(), framelog.Out, frame, framelog.Closed, "", false)
	}
}

// FramesOf is what is kept of a channel's frames; nil = none are kept.
func (s *Slots) FramesOf(channel int64) *framelog.Ring { return s.Frames.Ring(channel) }
