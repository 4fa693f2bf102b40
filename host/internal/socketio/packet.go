package socketio

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Packets of Engine.IO 4, by their first byte.
const (
	eioOpen    = '0'
	eioClose   = '1'
	eioPing    = '2'
	eioPong    = '3'
	eioMessage = '4'
	eioUpgrade = '5'
	eioNoop    = '6'
)

// probe is what both ends say over a transport before they change to it.
const probe = "probe"

// recordSeparator stands between the packets of one body of the polling transport.
const recordSeparator = "\x1e"

// kind is the type of a Socket.IO packet.
type kind byte

// The types of Socket.IO 5, which version 4 of its programs speaks. Those with
// binary attachments are not taken: nothing here carries any.
const (
	kindConnect      kind = '0'
	kindDisconnect   kind = '1'
	kindEvent        kind = '2'
	kindAck          kind = '3'
	kindConnectError kind = '4'
	kindBinaryEvent  kind = '5'
	kindBinaryAck    kind = '6'
)

// Bounds of what a packet names.
const (
	maxNamespace = 128
	maxEventName = 128
	maxArgs      = 8
)

// packet is one Socket.IO packet.
type packet struct {
	kind      kind
	namespace string // begins with a slash
	id        string // digits: the acknowledgement that the sender wants or gives; "" = none
	data      json.RawMessage
}

// parsePacket reads what an Engine.IO message holds. The data are checked to be
// JSON, and copied.
func parsePacket(s string) (packet, error) {
	if s == "" {
		return packet{}, errors.New("found nothing, expected a packet")
	}
	p := packet{kind: kind(s[0]), namespace: "/"}
	switch p.kind {
	case kindConnect, kindDisconnect, kindEvent, kindAck:
	case kindBinaryEvent, kindBinaryAck:
		return p, errors.New("found a packet with binary attachments, expected JSON alone")
	default:
		return p, fmt.Errorf("found a packet of type %.4q, expected 0 to 3", s[:1])
	}
	s = s[1:]
	if strings.HasPrefix(s, "/") {
		p.namespace, s, _ = strings.Cut(s, ",")
		if p.namespace, _, _ = strings.Cut(p.namespace, "?"); len(p.namespace) > maxNamespace {
			return p, fmt.Errorf("found a namespace of %d bytes, expected at most %d", len(p.namespace), maxNamespace)
		}
	}
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits > 19 {
		return p, fmt.Errorf("found an id of %d digits, expected at most 19", digits)
	}
	if p.id, s = s[:digits], s[digits:]; s != "" {
		if p.data = json.RawMessage(s); !json.Valid(p.data) {
			return p, errors.New("found data that are no JSON")
		}
	}
	return p, nil
}

// event is the name and the arguments of an event's data.
func (p *packet) event() (name string, args []json.RawMessage, err error) {
	var all []json.RawMessage
	if json.Unmarshal(p.data, &all) != nil || len(all) == 0 || json.Unmarshal(all[0], &name) != nil {
		return "", nil, errors.New("found no event, expected an array that begins with its name")
	}
	if len(name) > maxEventName || len(all)-1 > maxArgs {
		return "", nil, fmt.Errorf("found an event with a name of %d bytes and %d arguments, expected at most %d and %d", len(name), len(all)-1, maxEventName, maxArgs)
	}
	return name, all[1:], nil
}

// append makes an Engine.IO message of the packet.
func (p *packet) append(dst []byte) []byte {
	dst = append(dst, eioMessage, byte(p.kind))
	if p.namespace != "/" {
		dst = append(append(dst, p.namespace...), ',')
	}
	return append(append(dst, p.id...), p.data...)
}

// opening is the first packet of a session.
func opening(id string, upgrades []string, o *Options) []byte {
	b, err := json.Marshal(struct {
		SID          string   `json:"sid"`
		Upgrades     []string `json:"upgrades"`
		PingInterval int64    `json:"pingInterval"`
		PingTimeout  int64    `json:"pingTimeout"`
		MaxPayload   int      `json:"maxPayload"`
	}{id, upgrades, o.PingInterval.Milliseconds(), o.PingTimeout.Milliseconds(), MaxPayload})
	if err != nil {
		panic("socketio: marshal opening: " + err.Error()) // strings and numbers
	}
	return append([]byte{eioOpen}, b...)
}

// message is a JSON object with a text, as a refused CONNECT and errors of HTTP
// carry it. code < 0 = none.
func message(code int, text string) []byte {
	b := []byte(`{`)
	if code >= 0 {
		b = append(strconv.AppendInt(append(b, `"code":`...), int64(code), 10), ',')
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("socketio: marshal text: " + err.Error()) // a string
	}
	return append(append(append(b, `"message":`...), quoted...), '}')
}
