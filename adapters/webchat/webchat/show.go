package webchat

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// conversationID is what conversationOf makes.
var conversationID = regexp.MustCompile(`^[a-z2-7]{24}$`)

// retryFull is when the host may try again what errFull refused.
const retryFull = 5 * time.Second

// show stores a message for the browsers. Its error is sdk.Refused for a
// conversation that can't exist, and sdk.Retry while all of them are in use.
func (a *Adapter) show(to sdk.Target, pieces ...*piece) (sdk.Receipt, error) {
	if err := known(to); err != nil {
		return sdk.Receipt{}, err
	}
	handle, err := a.store.post(to.ConversationID, &entry{Kind: kindMessage, Pieces: pieces, replies: string(to.ReplyCtx)})
	if err != nil {
		return sdk.Receipt{}, sdk.Retry(retryFull, err)
	}
	return sdk.Receipt{Handle: handle}, nil
}

func known(to sdk.Target) error {
	if !conversationID.MatchString(to.ConversationID) {
		return sdk.Refused(fmt.Errorf("conversation_id: found %q, expected the 24 letters and digits of a browser's conversation", to.ConversationID))
	}
	return nil
}

// SendParts implements sdk.Rich: the whole message, each part as the page can
// show it. Like all the methods here it returns as soon as that is stored;
// browsers fetch it when they can. A message of nothing but what must not be
// shown is refused.
func (a *Adapter) SendParts(_ context.Context, to sdk.Target, text string, parts []message.Part) (sdk.Receipt, error) {
	pieces, err := piecesOf(text, parts)
	if err != nil {
		return sdk.Receipt{}, sdk.Refused(err)
	}
	return a.show(to, pieces...)
}

// Send shows text. It and the next four are for what the host sends in frames of
// their own: a message that is too large to come whole, and all of it in
// protocol 1.0.
func (a *Adapter) Send(_ context.Context, to sdk.Target, text string) (sdk.Receipt, error) {
	return a.show(to, &piece{Kind: kindText, Text: text})
}

// SendCard implements sdk.Cards.
func (a *Adapter) SendCard(_ context.Context, to sdk.Target, card *wire.Card) (sdk.Receipt, error) {
	return a.show(to, cardPiece(card))
}

// SendButtons implements sdk.Buttons.
func (a *Adapter) SendButtons(_ context.Context, to sdk.Target, text string, rows [][]wire.Button) (sdk.Receipt, error) {
	return a.show(to, buttonsPiece(text, rows))
}

// SendImage implements sdk.Media.
func (a *Adapter) SendImage(_ context.Context, to sdk.Target, image wire.Image) (sdk.Receipt, error) {
	p, err := picture(message.VisionPart{URL: image.URL, Path: image.Path, Caption: image.Caption})
	if err != nil {
		return sdk.Receipt{}, sdk.Refused(err)
	}
	return a.show(to, p)
}

// SendFile implements sdk.Media.
func (a *Adapter) SendFile(_ context.Context, to sdk.Target, file wire.File) (sdk.Receipt, error) {
	p, err := document(message.FilePart{URL: file.URL, Path: file.Path, FileName: file.Filename, Caption: file.Caption})
	if err != nil {
		return sdk.Receipt{}, sdk.Refused(err)
	}
	return a.show(to, p)
}

// Typing implements sdk.Typer.
func (a *Adapter) Typing(_ context.Context, to sdk.Target, on bool) error {
	if err := known(to); err != nil {
		return err
	}
	return a.store.setTyping(to.ConversationID, on)
}

// Edit implements sdk.Editor.
func (a *Adapter) Edit(_ context.Context, to sdk.Target, handle, text string) (sdk.Receipt, error) {
	if err := known(to); err != nil {
		return sdk.Receipt{}, err
	}
	id, err := a.store.edit(to.ConversationID, handle, string(to.ReplyCtx), text)
	if err != nil {
		return sdk.Receipt{}, sdk.Retry(retryFull, err)
	}
	return sdk.Receipt{Handle: id}, nil
}

// Delete implements sdk.Editor: the message says no more than that it was there.
func (a *Adapter) Delete(_ context.Context, to sdk.Target, handle string) error {
	if err := known(to); err != nil {
		return err
	}
	return sdk.Refused(a.store.remove(to.ConversationID, handle))
}

// Stream implements sdk.Streamer: the message grows in its place.
func (a *Adapter) Stream(_ context.Context, to sdk.Target, d sdk.Draft) (sdk.Receipt, error) {
	if err := known(to); err != nil {
		return sdk.Receipt{}, err
	}
	pieces, err := piecesOf(d.Text, d.Parts)
	if err != nil {
		return sdk.Receipt{}, sdk.Refused(err)
	}
	id, err := a.store.grow(to.ConversationID, string(to.ReplyCtx), d, pieces)
	if err != nil {
		return sdk.Receipt{}, sdk.Retry(retryFull, err)
	}
	return sdk.Receipt{Handle: id}, nil
}
