package webchat

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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

// show stores e for the browsers. Its error is sdk.Refused for a conversation
// that can't exist, and sdk.Retry while all of them are in use.
func (a *Adapter) show(to sdk.Target, e *entry) (sdk.Receipt, error) {
	if err := known(to); err != nil {
		return sdk.Receipt{}, err
	}
	e.replies = string(to.ReplyCtx)
	handle, err := a.store.post(to.ConversationID, e)
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

// Send shows text. Like all the methods below it returns as soon as the text is
// stored; browsers fetch it when they can.
func (a *Adapter) Send(_ context.Context, to sdk.Target, text string) (sdk.Receipt, error) {
	return a.show(to, &entry{Kind: kindText, Text: text})
}

// SendCard implements sdk.Cards.
func (a *Adapter) SendCard(_ context.Context, to sdk.Target, card *wire.Card) (sdk.Receipt, error) {
	return a.show(to, &entry{Kind: kindCard, Card: card})
}

// SendButtons implements sdk.Buttons.
func (a *Adapter) SendButtons(_ context.Context, to sdk.Target, text string, rows [][]wire.Button) (sdk.Receipt, error) {
	return a.show(to, &entry{Kind: kindButtons, Text: text, Buttons: rows})
}

// SendImage implements sdk.Media. A path must name a PNG, JPEG, GIF or WebP file
// of this machine, a url be http, https or a data url of such a type.
func (a *Adapter) SendImage(_ context.Context, to sdk.Target, image wire.Image) (sdk.Receipt, error) {
	e := &entry{Kind: kindImage, Media: &media{URL: image.URL, Caption: image.Caption}}
	switch {
	case image.Path != "":
		g, err := newGrant(image.Path, "", true)
		if err != nil {
			return sdk.Receipt{}, sdk.Refused(fmt.Errorf("image.path: %w", err))
		}
		e.grant, e.Media.URL, e.Media.Bytes = g, g.url(), g.info.Size()
	case !dataImage.MatchString(image.URL):
		if err := checkURL(image.URL); err != nil {
			return sdk.Receipt{}, sdk.Refused(fmt.Errorf("image.url: %w", err))
		}
	}
	return a.show(to, e)
}

// SendFile implements sdk.Media. A path must name a file of this machine, a url
// be http or https.
func (a *Adapter) SendFile(_ context.Context, to sdk.Target, file wire.File) (sdk.Receipt, error) {
	e := &entry{Kind: kindFile, Media: &media{URL: file.URL, Name: file.Filename, Caption: file.Caption}}
	if file.Path != "" {
		g, err := newGrant(file.Path, file.Filename, false)
		if err != nil {
			return sdk.Receipt{}, sdk.Refused(fmt.Errorf("file.path: %w", err))
		}
		e.grant, e.Media.URL, e.Media.Name, e.Media.Bytes = g, g.url(), g.name, g.info.Size()
	} else if err := checkURL(file.URL); err != nil {
		return sdk.Receipt{}, sdk.Refused(fmt.Errorf("file.url: %w", err))
	}
	return a.show(to, e)
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

// Stream implements sdk.Streamer: the text grows in its place.
func (a *Adapter) Stream(_ context.Context, to sdk.Target, d sdk.Draft) (sdk.Receipt, error) {
	if err := known(to); err != nil {
		return sdk.Receipt{}, err
	}
	id, err := a.store.grow(to.ConversationID, string(to.ReplyCtx), d)
	if err != nil {
		return sdk.Receipt{}, sdk.Retry(retryFull, err)
	}
	return sdk.Receipt{Handle: id}, nil
}

// Profile implements sdk.Profiler.
func (a *Adapter) Profile() sdk.Profile {
	return sdk.Profile{Parts: []string{message.TypeUI, message.TypeAudioOutput}}
}

// SendParts implements sdk.Rich for forms and sound; all else is said in words.
func (a *Adapter) SendParts(_ context.Context, to sdk.Target, text string, parts []message.Part) (sdk.Receipt, error) {
	e := &entry{Kind: kindText, Text: text}
	if len(parts) == 1 {
		if form, err := message.As[message.UIPart](parts[0]); err == nil {
			e.Kind, e.Text, e.Form = kindForm, "", &form
		} else if sound, err := message.As[message.AudioOutputPart](parts[0]); err == nil {
			if err := checkURL(sound.URL); err != nil {
				return sdk.Receipt{}, sdk.Refused(fmt.Errorf("audio.url: %w", err))
			}
			e.Kind, e.Text, e.Media = kindAudio, "", &media{URL: sound.URL, Caption: text}
		}
	}
	return a.show(to, e)
}

// dataImage is what a browser shows without running anything. The page checks
// the same.
var dataImage = regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$`)

// checkURL says why a browser must not be led there.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return errors.New("found neither path nor url")
	case err != nil:
		return errors.New("found what is no url, expected http:// or https://")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("found scheme %q, expected http:// or https:// and a host", u.Scheme)
	}
	return nil
}
