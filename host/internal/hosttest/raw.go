package hosttest

import (
	"encoding/binary"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Opcodes of WebSocket frames.
const (
	OpContinuation = 0
	OpText         = 1
	OpBinary       = 2
	OpPing         = 9
	OpPong         = 10
)

// RawFrame is the bytes of one WebSocket frame. Its mask is zero, which is a mask.
func RawFrame(fin bool, op byte, payload string) []byte {
	b := []byte{op, 0x80}
	if fin {
		b[0] |= 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b[1] |= byte(n)
	case n <= 0xffff:
		b[1] |= 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] |= 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, 0, 0, 0, 0)
	return append(b, payload...)
}

// Raw writes bytes below the WebSocket, all at once.
func (c *Client) Raw(frames ...[]byte) {
	c.T.Helper()
	var all []byte
	for _, f := range frames {
		all = append(all, f...)
	}
	// gorilla leaves the deadline of its last control frame, a second, behind.
	if err := c.TCP.SetWriteDeadline(await.Deadline()); err != nil {
		c.T.Fatal(err)
	}
	if _, err := c.TCP.Write(all); err != nil {
		c.T.Fatalf("write: %v", err)
	}
}

// Fragments cuts a text message into n frames.
func Fragments(op byte, text string, n int) [][]byte {
	var out [][]byte
	for i := range n {
		from, to := len(text)*i/n, len(text)*(i+1)/n
		out = append(out, RawFrame(i == n-1, op, text[from:to]))
		op = OpContinuation
	}
	return out
}
