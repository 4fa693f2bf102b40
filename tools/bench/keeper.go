package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// maxOwed bounds the answers that a keeper may have to wait for: far fewer than
// the host queues for a channel.
const maxOwed = 2000

// keeper is an adapter of protocol 1.1 that acknowledges, and outlives its host.
// It remembers what it asked, what the host acknowledged and what it was sent,
// over any number of connections; after each it goes on as an adapter should:
// what was not acknowledged is asked again, under the same id. One goroutine at
// a time uses it, but for more and cut.
type keeper struct {
	channel string // its name
	token   string
	Scenario
	more atomic.Bool // it goes on asking; else it ends once everything is settled

	mu sync.Mutex // guards ws, for cut
	ws *websocket.Conn

	conn    *corked
	asked   []question
	low     int // no question before it waits for its acknowledgement
	taken   int // acknowledged by the host
	shown   int // different answers that came
	told    int // of them, acknowledged by us
	threads []thread
	answers map[string]int // sequence numbers by the answer's message id
	life    int            // counts connections
	keeperFaults
}

// question is one inbound message and its answer.
type question struct {
	taken  bool   // the host acknowledged it
	answer string // the answer's message id; "" = none came
	told   bool   // we acknowledged the answer
}

// thread is one conversation's order.
type thread struct {
	last int // sequence number of the newest answer; -1 = none
	came int // that of the answer that came last …
	life int // … on this connection
}

// keeperFaults counts what a host must not do, and below what it may.
type keeperFaults struct {
	Lost       int    `json:"lost"`                 // acknowledged and not stored, or never answered
	Duplicated int    `json:"duplicated"`           // stored twice, answered under two ids, or written twice on one connection
	Overtaken  int    `json:"repeated_after_later"` // an acknowledged answer came again after the one behind it had come
	Disordered int    `json:"out_of_order"`         // answered, or stored, after a later one of the conversation
	Foreign    int    `json:"foreign"`              // never asked
	Cursor     int    `json:"wrong_cursor"`         // not that of the newest message that is stored
	Unsettled  int    `json:"not_delivered"`        // stored in another state than delivered, at the end
	Refused    int    `json:"refused"`              // not acknowledged but refused
	Refusal    string `json:"first_refusal,omitempty"`

	Dropped  int `json:"repeats_dropped"` // asked again though it was stored: the host acknowledged and dropped it
	Again    int `json:"sent_again"`      // answers that we had not acknowledged, as they must
	Repeated int `json:"repeated"`        // that we had: the acknowledgement was lost, or its commit
}

func newKeeper(channel, token string, s Scenario) *keeper {
	k := &keeper{channel: channel, token: token, Scenario: s, answers: map[string]int{}, threads: make([]thread, s.Conversations)}
	for i := range k.threads {
		k.threads[i].last = -1
	}
	k.more.Store(true)
	return k
}

// conversation is that of a sequence number.
func (k *keeper) conversation(seq int) string { return "k" + strconv.Itoa(seq%k.Conversations) }

// text is what a question says, and its answer after "echo: ".
func (k *keeper) text(seq int) string {
	return strconv.Itoa(seq) + " " + strings.Repeat(padding, k.Size/len(padding)+1)[:k.Size]
}

// live is one connection: it registers, asks again what was not acknowledged,
// and goes on until the connection ends or, once there is no more to ask,
// everything is settled (nil). stored is the newest question that the host has
// on its disk; -1 = none. letIn is called after register.
func (k *keeper) live(ctx context.Context, url string, stored int, letIn func()) error {
	ack, err := k.register(ctx, url)
	if err != nil {
		return err
	}
	defer k.cut()
	letIn()
	k.resume(ack.Cursor, stored)
	for k.low < len(k.asked) && k.asked[k.low].taken {
		k.low++
	}
	for seq := k.low; seq < len(k.asked); seq++ {
		if k.asked[seq].taken {
			continue
		}
		if seq <= stored {
			k.Dropped++
		}
		if err := k.ask(seq); err != nil {
			return err
		}
	}
	for {
		if err := k.fill(); err != nil {
			return err
		}
		if k.settled() {
			return k.leave()
		}
		_, frame, err := k.ws.ReadMessage()
		if err != nil {
			return err
		}
		if err := k.receive(frame); err != nil {
			return err
		}
	}
}

func (k *keeper) register(ctx context.Context, url string) (wire.RegisterAck, error) {
	ws, conn, err := dial(ctx, url, k.token)
	if err != nil {
		return wire.RegisterAck{}, err
	}
	k.mu.Lock()
	k.ws, k.conn = ws, conn
	k.mu.Unlock()
	in := wire.Inbound{Type: wire.TypeRegister, Register: &wire.Register{Platform: "bench", Capabilities: []string{"ack"}, Protocol: wire.V11.String(), Profile: &wire.Profile{InFlight: k.Acks}}}
	ack, err := register(k.ws, in.Append(nil))
	if err == nil && ack.Protocol != wire.V11.String() {
		err = fmt.Errorf("register: %w: found protocol %q, expected %s", errNotRegistered, ack.Protocol, wire.V11)
	}
	if err != nil {
		k.cut()
		return ack, err
	}
	k.life++
	return ack, nil
}

// resume compares what the host has with what it said. Questions are committed
// in the order in which they were asked, each with its number as cursor: so the
// cursor must be that of the newest that is stored, no less and no more.
func (k *keeper) resume(cursor string, stored int) {
	want := ""
	if stored >= 0 {
		want = strconv.Itoa(stored)
	}
	if cursor != want {
		k.Cursor++
	}
	if stored >= len(k.asked) {
		k.Foreign++
	}
}

// settled reports that there is nothing more to do.
func (k *keeper) settled() bool {
	n := len(k.asked)
	return !k.more.Load() && k.taken == n && k.shown == n && k.told == n
}

// fill asks as much as may be under way.
func (k *keeper) fill() error {
	for k.more.Load() && len(k.asked)-k.taken < k.Window && len(k.asked)-k.shown < maxOwed {
		k.asked = append(k.asked, question{})
		if err := k.ask(len(k.asked) - 1); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) ask(seq int) error {
	id := strconv.Itoa(seq)
	in := wire.Inbound{
		Type: wire.TypeMessage, UserID: "user-1", Text: k.text(seq), MessageID: id, Cursor: id,
		Routing: wire.Routing{SessionKey: k.conversation(seq), ConversationID: k.conversation(seq), ReplyCtx: wire.Raw(id)},
	}
	return k.ws.WriteMessage(websocket.TextMessage, in.Append(nil))
}

// cut ends the connection, if there is one.
func (k *keeper) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ws != nil {
		_ = k.ws.Close()
	}
}

// leave lets the last acknowledgements arrive.
func (k *keeper) leave() error {
	_ = k.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	if err := k.conn.flush(); err != nil {
		return err
	}
	for {
		if _, _, err := k.ws.ReadMessage(); err != nil {
			return nil
		}
	}
}

func (k *keeper) receive(frame []byte) error {
	out, err := wire.DecodeOutbound(frame)
	if err != nil {
		return err
	}
	switch out.Type {
	case wire.TypeMessageAck:
		k.acknowledged(out.MessageAck)
	case wire.TypeSend:
		return k.answered(out)
	case wire.TypeError:
		k.refuse(out.Error.Message)
	}
	return nil
}

func (k *keeper) refuse(why string) {
	if k.Refused++; k.Refusal == "" {
		k.Refusal = why
	}
}

// acknowledged notes the host's word on a question.
func (k *keeper) acknowledged(ack *wire.MessageAck) {
	seq, err := strconv.Atoi(ack.MessageID)
	switch {
	case err != nil || seq < 0 || seq >= len(k.asked):
		k.Foreign++
	case !ack.OK:
		k.refuse(ack.Error)
	case k.asked[seq].taken: // only what was not acknowledged is asked again
		k.Duplicated++
	default:
		k.asked[seq].taken = true
		k.taken++
	}
}

// answered notes an answer and acknowledges it, unless it is of the
// conversation that gets no acknowledgement on this connection.
//
// So many messages of a conversation are in flight as we take ahead, and the next one
// is committed behind what became of those before. So an answer that comes proves that
// all which were not in flight beside it are settled on the disk: only so many of the
// newest of a conversation may come again, in order and once on each later connection,
// whatever happened to host or network.
func (k *keeper) answered(out *wire.Outbound) error {
	var seq int
	if err := json.Unmarshal([]byte(out.ReplyCtx), &seq); err != nil || seq < 0 || seq >= len(k.asked) ||
		out.Text != "echo: "+k.text(seq) || out.ConversationID != k.conversation(seq) {
		k.Foreign++
		return nil
	}
	q, t := &k.asked[seq], &k.threads[seq%k.Conversations]
	of, known := k.answers[out.MessageID]
	here := t.life == k.life
	switch {
	case known && of != seq, q.answer != "" && q.answer != out.MessageID, q.answer == out.MessageID && here && seq == t.came:
		k.Duplicated++
	case q.answer == "":
		q.answer, k.answers[out.MessageID] = out.MessageID, seq
		k.shown++
		if t.last >= 0 && seq != t.last+k.Conversations || t.last < 0 && seq >= k.Conversations {
			k.Disordered++
		}
		t.last = max(t.last, seq)
	case seq <= t.last-max(1, k.Acks)*k.Conversations:
		k.Overtaken++
	case here && seq < t.came:
		k.Disordered++
	case q.told:
		k.Repeated++
	default:
		k.Again++
	}
	t.came, t.life = seq, k.life
	if k.more.Load() && seq%k.Conversations == k.life%(k.Conversations+1) {
		return nil // withheld: it must come again on another connection
	}
	if !q.told {
		q.told = true
		k.told++
	}
	ack := wire.Inbound{Type: wire.TypeMessageAck, MessageID: out.MessageID, Later: &wire.Later{OK: true, PreviewHandle: "h" + strconv.Itoa(seq)}}
	return k.ws.WriteMessage(websocket.TextMessage, ack.Append(nil))
}

// judge compares the keeper's memory with its channel's history, newest first.
// Everything must be settled.
func (k *keeper) judge(log history) {
	type found struct {
		questions, answers int
		question           entry
		answer             entry
	}
	all := make([]found, len(k.asked))
	newest := make([]int, k.Conversations) // seen last in each conversation, walking back
	for i := range newest {
		newest[i] = len(k.asked)
	}
	for _, e := range log {
		var seq int
		if json.Unmarshal(e.ReplyCtx, &seq) != nil || seq < 0 || seq >= len(all) {
			k.Foreign++
			continue
		}
		f := &all[seq]
		if e.Direction == "out" {
			f.answers++
			f.answer = e
			continue
		}
		f.questions++
		f.question = e
		if conv := seq % k.Conversations; seq > newest[conv] {
			k.Disordered++
		} else {
			newest[conv] = seq
		}
	}
	for seq, f := range all {
		switch q := k.asked[seq]; {
		case f.questions > 1 || f.answers > 1:
			k.Duplicated++
		case q.taken && (f.questions == 0 || f.answers == 0), q.answer == "":
			k.Lost++
		case f.question.Text != k.text(seq) || f.answer.ID != q.answer || f.answer.ReplyTo != f.question.ID:
			k.Foreign++
		case f.answer.State != "delivered" || f.answer.Handle != "h"+strconv.Itoa(seq):
			k.Unsettled++
		}
	}
}

var errNotSettled = errors.New("not everything was acknowledged and answered in time")
