package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

var errLate = errors.New("no register in time")

// Session is one connection of an adapter. Its reader goroutine runs serve; a
// flusher goroutine exists only while something waits to be written. All
// writing after register is the flusher's.
type Session struct {
	slots *Slots
	conn  transport.Conn
	from  Origin

	place    place                         // guarded by Slots.mu; after register only expires changes
	late     *time.Timer                   // ends a register that takes too long
	order    int64                         // see hub.Info
	inbox    Attachment                    // nil until it has its slot
	window   chan struct{}                 // one for each received frame that is not committed
	uploads  *rate.Limiter                 // nil until the first
	ignored  *rate.Sometimes               // log lines about acknowledgements; nil until the first that is ignored
	changes  *rate.Sometimes               // log lines about the platform; nil until it says how that is
	warnings []string                      // about the register frame
	typos    []string                      // fields that the adapter was told of: at most maxTypos
	looked   int                           // frames in which typos were looked for
	lenient  wire.Lenient                  // fields that were named as wrong, and read
	in, out  atomic.Uint64                 // frames read and written since register
	frames   atomic.Pointer[framelog.Ring] // of the channel; nil until its first frame, or none are kept
	protocol wire.Protocol                 // of the inbox
	admitted bool                          // guarded by Slots.mu
	lively   bool                          // of the reader: frames come close together
	taking   atomic.Bool                   // the reader may be waiting for the disk

	mu        sync.Mutex // guards what follows
	queue     []item
	spare     []item // the queue before, to be used again
	durable   int
	bytes     int
	overSince time.Time      // more waits than may; zero = it does not
	room      chan struct{}  // who waits for Room; nil = nobody
	flushed   chan struct{}  // closed when the flusher ended; nil = none ran yet
	cut       chan struct{}  // closed when the connection was closed below the flusher; nil = it was not
	lost      []hub.Parcel   // of which it is unknown whether they were written
	code      wire.CloseCode // to close with once the queue is written; 0 = none
	why       string
	pinged    time.Time
	flushing  bool
	retired   bool
	dead      bool
}

var _ hub.Port = (*Session)(nil)

// item is one thing to write: a parcel, or a frame without routing, or a ping.
type item struct {
	parcel hub.Parcel
	frame  []byte
	ping   bool
	size   int
}

func newSession(s *Slots, c transport.Conn, from Origin) *Session {
	return &Session{slots: s, conn: c, from: from}
}

// serve runs the session to its end.
func (n *Session) serve() {
	err := n.run()
	n.drainConn()
	n.end(err)
}

// run lets the adapter in and reads until the connection ends.
func (n *Session) run() error {
	n.late = time.AfterFunc(n.slots.RegisterTimeout, func() { _ = n.conn.Close(wire.CloseRefused, errLate.Error()) })
	// On a stack of its own: the one that the database needs would stay with
	// this goroutine for as long as the adapter does.
	registered := make(chan error)
	go func() { registered <- n.guard(n.register) }()
	err := <-registered
	if inTime := n.late.Stop(); n.inbox == nil && !inTime && err == nil {
		err = errLate
	}
	if n.late = nil; err != nil {
		return err
	}
	return n.guard(n.read)
}

// guard makes a defect of ours cost one session only.
func (n *Session) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			n.slots.Log.Error("session panicked", "error", p, "stack", string(debug.Stack()))
			err = errors.New("internal error")
			_ = n.conn.Close(wire.CloseOverload, err.Error())
		}
	}()
	return f()
}

// drainConn reads until the connection is freed.
func (n *Session) drainConn() {
	for {
		if _, err := n.conn.Read(); err != nil {
			return
		}
	}
}

// introduce is what the adapter said of itself, as the hub wants it.
func (n *Session) introduce(said *wire.Register) hub.Info {
	i := hub.Info{
		Transport: n.from.Transport, Platform: said.Platform, Protocol: wire.Negotiate(said.Protocol), Names: said.Capabilities,
		Remote: n.from.Remote, Local: n.from.Local, Since: time.Now(), Token: n.place.token, Order: n.order, Heard: n.conn.Heard,
		Frames: func() (in, out uint64) { return n.in.Load(), n.out.Load() },
	}
	if c, ok := n.conn.(interface{ RoundTrip() time.Duration }); ok {
		i.RoundTrip = c.RoundTrip
	}
	if isBlank(i.Platform) {
		i.Platform = n.place.name
	}
	if len(i.Names) == 0 {
		i.Names = []string{"text"}
	}
	if said.Profile != nil {
		i.Profile = *said.Profile
	}
	i.Declared, i.Unknown = wire.ParseCapsFor(said.Protocol, said.Capabilities)
	i.Declared |= wire.CapText
	return i
}

// attach puts the session into its slot; frame is the register frame.
func (n *Session) attach(ctx context.Context, row ledger.Channel, said *wire.Register, frame []byte) error {
	info := n.introduce(said)
	if len(info.Unknown) > 0 {
		n.slots.Log.Info("unknown capabilities ignored", "channel", row.Name, "names", info.Unknown)
	}
	if info.Protocol != wire.V10 {
		for _, typo := range wire.Typos(frame) {
			n.warnings = append(n.warnings, typo.String())
		}
	}
	n.mu.Lock()
	if n.code != 0 { // revoked meanwhile: it must not replace anybody
		n.mu.Unlock()
		return errors.New(n.why)
	}
	n.window = make(chan struct{}, Window)
	n.pinged = time.Now()
	n.frames.Store(n.slots.Frames.Known(row.Key))
	n.mu.Unlock()
	n.frames.Load().Record(time.Now(), framelog.In, frame, framelog.Accepted, "", true)
	if !n.late.Stop() { // the close frame is out: it must not replace who came since
		return errLate
	}
	inbox, before, err := n.slots.inbox.Attach(ctx, row, n, info)
	if errors.Is(err, hub.ErrOutdated) {
		n.turned(err.Error())
		n.slots.Log.Info("adapter refused", "remote", n.from.Remote, "reason", err)
		_ = n.conn.Close(wire.CloseReplaced, err.Error())
		return err
	}
	if err != nil {
		n.turned("storage unavailable")
		n.slots.Log.Error("adapter not attached", "channel", row.Name, "error", err)
		_ = n.conn.Close(wire.CloseOverload, "storage unavailable")
		return err
	}
	if old, ok := before.(*Session); ok {
		old.shut(wire.CloseReplaced, "replaced by a newer connection")
	}
	n.inbox, n.protocol = inbox, info.Protocol
	n.slots.Note(n.met(ledger.Attached))
	n.slots.Log.Info("adapter attached", "channel", row.Name, "platform", info.Platform, "protocol", info.Protocol, "remote", n.from.Remote,
		"declared", info.Names, "effective", inbox.Caps().Names(), "metadata", string(said.Metadata))
	return nil
}

// Admitted implements hub.Port: the acknowledgement is the first thing that the
// flusher writes, before anything that waited for the adapter.
func (n *Session) Admitted(v wire.View, cursor string) {
	ack := wire.RegisterAck{OK: true}
	if v.Protocol != wire.V10 {
		ack.Protocol, ack.Capabilities, ack.Cursor, ack.Warnings = v.Protocol.String(), v.Caps.Names(), cursor, n.warnings
		ack.Channel = wire.ChannelRef{ID: n.place.id, Name: n.place.name}
		ack.Limits = wire.Limits{MaxFrameBytes: wire.MaxFrame, PingIntervalMS: int(n.slots.PingInterval.Milliseconds()), Window: Window,
			MaxUploadBytes: n.slots.MaxUpload, SilenceTimeoutMS: int(n.slots.SilenceTimeout.Milliseconds())}
		if v.Caps.Has(wire.CapAck) {
			ack.Limits.InFlight, ack.Limits.AckTimeoutMS = v.Profile.InFlight, int(n.slots.AckTimeout.Milliseconds())
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, item{frame: ack.Append(nil)})
}

func isBlank(s string) bool {
	for _, c := range s {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// LivelyPause is the pause between two frames below which a session commits on
// its own goroutine: one that sends less often should cost no more memory than
// one that is silent, and a tenth of a millisecond is nothing to it.
const LivelyPause = time.Second

// read takes frames until the connection ends.
func (n *Session) read() error {
	before, room := n.conn.Heard(), new(wire.Inbound)
	for now := time.Now(); ; { // a clock is dear: frames that were read together share its reading
		*room = wire.Inbound{} // what an idle adapter said last is not kept
		frame, err := n.conn.Read()
		if err != nil {
			return err
		}
		at := n.conn.Heard()
		n.lively, before = at.Sub(before) < LivelyPause, at
		if at.After(now) {
			now = at
		}
		n.in.Add(1)
		in, werr := n.decode(frame, room)
		allowed, most := n.inbox.Allow(now)
		if !allowed { // to read and refuse as fast as it sends would cost all others
			time.Sleep(limitedPause)
			now = time.Now()
		}
		if !allowed && !answers(in) {
			werr = tooMany(in, werr, most)
		}
		if werr == nil && in.Type == wire.TypeMessageAck {
			n.acknowledge(frame, in)
			continue
		}
		n.record(frame, in, werr)
		if werr != nil {
			n.refuseFrame(werr)
			continue
		}
		n.tellTypos(frame)
		if in.Cursor != "" && !kept(in.Type) {
			n.inbox.Remember(in.Cursor)
		}
		switch in.Type {
		default:
			if kept(in.Type) {
				n.window <- struct{}{} // full: we stop reading this socket
				n.taking.Store(true)
				n.inbox.Receive(in)
				n.taking.Store(false)
			}
		case wire.TypeUpload:
			n.upload(in)
		case wire.TypePlatformStatus:
			n.platform(in.Later.Status)
		case wire.TypePing:
			n.answer(wire.AppendPong(nil))
		case wire.TypeRegister:
			e := wire.Error{Code: wire.CodeAlreadyRegistered, Message: "type: found register, which only the first frame may be", Ref: in.MessageID}
			n.answer(e.Append(nil))
		}
	}
}

// acknowledge takes the adapter's word on a frame. What it makes us send is written
// behind the record of it.
func (n *Session) acknowledge(frame []byte, in *wire.Inbound) {
	if in.Cursor != "" {
		n.inbox.Remember(in.Cursor)
	}
	verdict, code := framelog.Accepted, wire.Code("")
	if !n.inbox.Acknowledge(in) {
		verdict, code = framelog.Ignored, wire.CodeUnknownMessage
		if n.ignored == nil {
			n.ignored = &rate.Sometimes{First: 1, Interval: ignoredPause}
		}
		n.ignored.Do(func() {
			n.slots.Log.Info("acknowledgement ignored: no message in flight has its id", "channel", n.place.name, "message_id", fmt.Sprintf("%.80s", in.MessageID))
		})
	}
	n.ring().Record(n.conn.Heard(), framelog.In, frame, verdict, code, false)
	if verdict == framelog.Ignored {
		n.leave(wire.Refuse(code, "message_id: found %.80q, expected that of a message in flight: "+
			"it was acknowledged before, went with its connection, is a draft, or is no id of the host's", in.MessageID).About(in.MessageID).Append(nil))
	}
	n.Flush()
}

// platform takes the adapter's word on its platform. Who changes it all the time is not
// followed in the log.
func (n *Session) platform(said *wire.PlatformStatus) {
	if !n.inbox.TellPlatform(said) {
		return
	}
	if n.changes == nil {
		n.changes = &rate.Sometimes{First: platformLines, Interval: platformPause}
	}
	n.changes.Do(func() {
		level := slog.LevelInfo
		if said.State == wire.PlatformRefused {
			level = slog.LevelWarn
		}
		n.slots.Log.Log(context.Background(), level, "platform of the adapter", "channel", n.place.name, "state", said.State, "reason", said.Reason)
	})
}

// answers reports a frame that we asked for: to refuse it would only make us send
// the message again. in is nil if it could not be read.
func answers(in *wire.Inbound) bool { return in != nil && in.Type == wire.TypeMessageAck }

// tooMany refuses a frame that is over the rate, also one that could not be read.
func tooMany(in *wire.Inbound, unread *wire.Error, most int) *wire.Error {
	e := &wire.Error{Code: wire.CodeRateLimited, Message: fmt.Sprintf("more than %d frames a second: this one was not stored, send it again later", most)}
	if unread != nil {
		e.Ref = unread.Ref
	} else {
		e.Ref = in.MessageID
	}
	return e
}

// kept reports the frames that become a message.
func kept(t wire.Type) bool {
	switch t {
	case wire.TypeMessage, wire.TypeCardAction, wire.TypeFormSubmit, wire.TypeMessageEdit, wire.TypeMessageDelete, wire.TypeReaction:
		return true
	}
	return false
}

// refuseFrame answers a frame that is not taken: with an error frame, or the
// acknowledgement that the adapter waits for if nothing is wrong with the frame.
func (n *Session) refuseFrame(err *wire.Error) {
	if err.Code == wire.CodeRateLimited && n.acks(err.Ref) {
		n.answer(nack(err.Ref, err))
		return
	}
	n.answer(err.Append(nil))
}

// acks reports whether a frame with the id is acknowledged.
func (n *Session) acks(id string) bool {
	return id != "" && n.protocol != wire.V10 && n.inbox.Caps().Has(wire.CapAck)
}

func nack(id string, err *wire.Error) []byte {
	return wire.MessageAck{MessageID: id, Error: string(err.Code) + ": " + err.Message, Retryable: err.Retryable()}.Append(nil)
}

// upload makes room for a file. Each costs the disk, so that fewer are allowed
// than frames.
func (n *Session) upload(in *wire.Inbound) {
	if n.uploads == nil {
		n.uploads = rate.NewLimiter(uploadRate, uploadBurst)
	}
	if !n.uploads.Allow() {
		n.answer(wire.UploadAck{MessageID: in.MessageID, Retryable: true, Error: fmt.Sprintf(
			"more than %g uploads a second: ask again later", float64(uploadRate))}.Append(nil))
		return
	}
	n.answer(n.inbox.Upload(in).Append(nil))
}

// decode reads a frame into room as the session has negotiated it; nil if that can't
// be. What an operator allows may change meanwhile, but adds nothing to protocol 1.0.
func (n *Session) decode(frame []byte, room *wire.Inbound) (*wire.Inbound, *wire.Error) {
	var d wire.Dialect
	if n.protocol != wire.V10 {
		d = wire.Dialect{Protocol: n.protocol, Caps: n.inbox.Caps()}
	}
	if err := room.Decode(frame, d); err != nil {
		return nil, err
	}
	return room, nil
}

// end frees what the session held, and waits for its flusher.
func (n *Session) end(err error) {
	if n.inbox != nil {
		n.inbox.Detach()
	}
	n.mu.Lock()
	n.dead = true
	flushed, cut, code, why := n.flushed, n.cut, n.code, n.why
	if n.code != 0 {
		err = fmt.Errorf("closed with %d: %s", n.code, n.why)
	}
	n.mu.Unlock()
	for _, done := range []chan struct{}{flushed, cut} {
		if done != nil {
			<-done
		}
	}
	if len(n.lost) > 0 { // nobody adds to them any more
		n.inbox.Broken(n.lost)
	}
	n.recordEnd(err)
	n.noteEnd(err, code, why)
	if n.inbox != nil {
		n.slots.Log.Info("adapter detached", "channel", n.place.name, "remote", n.from.Remote, "reason", err)
	}
}

// Settled implements hub.Port.
func (n *Session) Settled(ref string, err *wire.Error) {
	<-n.window
	switch {
	case n.acks(ref) && err == nil: // Flush follows, once a commit
		n.leave(wire.MessageAck{MessageID: ref, OK: true}.Append(nil))
	case err == nil:
	case n.acks(ref):
		n.answer(nack(ref, err))
	default:
		err.Ref = ref
		n.answer(err.Append(nil))
	}
}

// pulse pings when it is time, and drops who was silent for too long or whose
// token has expired.
func (n *Session) pulse(now, expires time.Time) {
	if !expires.IsZero() && !now.Before(expires) {
		n.shut(wire.CloseRevoked, "token expired")
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	// While its window is full or the disk is waited for we don't read it: the
	// silence is ours.
	reading := len(n.window) < Window && !n.taking.Load()
	if reading && now.Sub(n.conn.Heard()) >= n.slots.SilenceTimeout {
		n.close(wire.CloseRefused, "silent for too long")
		return
	}
	if now.Sub(n.pinged) >= n.slots.PingInterval {
		n.pinged = now
		n.queue = append(n.queue, item{ping: true})
		n.start()
	}
}
