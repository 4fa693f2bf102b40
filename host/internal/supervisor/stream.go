package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/grpcconn"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// A plugin that was cut off for a reason that passes is attached again after
// attachPause, if its stream had lasted for attachAgain: the platform's
// connections survive. One that is cut off sooner has failed.
const (
	attachPause = time.Second
	attachAgain = time.Minute
)

// link is the plugin's stream as the bridge has it; it notes how that ended.
type link struct {
	*grpcconn.Stream
	ended chan struct{} // closed when Read has failed

	mu   sync.Mutex // guards what follows
	err  error
	code wire.CloseCode // that the bridge closed with; 0 = it did not
	why  string
}

var _ transport.Conn = (*link)(nil)

// Read implements transport.Conn.
func (k *link) Read() ([]byte, error) {
	frame, err := k.Stream.Read()
	if err != nil {
		k.mu.Lock()
		if k.err == nil {
			k.err = err
			close(k.ended)
		}
		k.mu.Unlock()
	}
	return frame, err
}

// Close implements transport.Conn.
func (k *link) Close(code wire.CloseCode, why string) error {
	k.mu.Lock()
	if k.code == 0 {
		k.code, k.why = code, why
	}
	k.mu.Unlock()
	return k.Stream.Close(code, why)
}

// end is why the stream ended, and whether another may fare better.
func (k *link) end() (err error, passing bool) { //nolint:staticcheck // the error is the result here, not its failure
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.code == 0 {
		return fmt.Errorf("ended its stream: %w", k.err), false
	}
	passing = k.code == wire.CloseOverload || k.code == wire.CloseTooSlow
	return fmt.Errorf("cut off with %d: %s", k.code, k.why), passing
}

// attach puts the plugin's stream into its channel's slot, again after what
// passes, until it ends for another reason or ctx does.
func (l *life) attach(ctx context.Context) error {
	for {
		began := time.Now()
		k, err := l.open(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.ended:
		}
		err, passing := k.end()
		if !passing || time.Since(began) < attachAgain {
			return err
		}
		l.sup.Log.Warn("plugin's stream ended, will attach again", "plugin", l.order.plugin.Name, "reason", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(attachPause):
		}
	}
}

// open starts a session on a new stream.
func (l *life) open(ctx context.Context) (*link, error) {
	name := l.order.plugin.Name
	ctx, cancel := within(ctx, l.sup.Timing.Start)
	defer cancel()
	row, err := l.sup.Store.Channel(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	stream, err := l.client.far.Attach(ctx)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errSlow) {
			err = cause
		}
		return nil, fmt.Errorf("attach: %w", err)
	}
	k := &link{Stream: stream, ended: make(chan struct{})}
	l.sup.Slots.Start(k, bridge.Origin{
		Transport: "plugin", Channel: &row, Local: true,
		Remote: fmt.Sprintf("process %d", l.process.running().Pid),
	})
	return k, nil
}
