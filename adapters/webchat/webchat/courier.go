package webchat

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// patience is how long a message may be under way before the page says that it
// waits for the host.
const patience = 2 * time.Second

// courier hands what users did to the host: in order within a conversation,
// different conversations at once.
type courier struct {
	host  *sdk.Host
	store *store
}

// serve works until ctx ends. What was not handed over stays in the store.
func (c courier) serve(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		for _, conv := range c.store.claim() {
			work.Go(func() { c.drain(ctx, conv) })
		}
		select {
		case <-c.store.work:
		case <-ctx.Done():
			return
		}
	}
}

// drain hands over what the conversation has, until there is no more.
func (c courier) drain(ctx context.Context, conv *conversation) {
	for e := c.store.head(conv); e != nil; e = c.store.head(conv) {
		slow := time.AfterFunc(patience, func() { c.store.waits(conv, e) })
		err := c.deliver(ctx, e)
		slow.Stop()
		switch {
		case err == nil:
			c.store.settle(conv, e, stateSent, "")
		case ctx.Err() != nil || errors.Is(err, sdk.ErrStopped):
			c.store.unclaim(conv)
			return
		default:
			c.store.settle(conv, e, stateFailed, strings.TrimPrefix(err.Error(), "deliver event: "))
		}
	}
}

// deliver brings the files to the host, then the message that names them.
func (c courier) deliver(ctx context.Context, e *entry) error {
	event := e.event
	event.ID = event.ConversationID + "-" + e.Client // the same if the page sends it again to another process
	for _, up := range e.uploads {
		id, err := c.store.upload(ctx, c.host, up)
		if err != nil {
			return err
		}
		event.Attachments = append(event.Attachments, wire.Attachment{AttachmentID: id, Name: up.name})
	}
	return c.host.Deliver(ctx, event)
}
