package hub

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// linkTTL is how long the urls live that far ends get: people click them later.
const linkTTL = 24 * time.Hour

// keep makes an outgoing message's parts fit to be stored: urls of this host
// lose their tokens, and what is inline or on this machine gets an address, for
// far ends that can't take it as it is. The error names the part.
func (h *Hub) keep(ctx context.Context, owner string, m *message.Message) error {
	if err := m.Meta.Check(); err != nil {
		return errors.New(err.Message)
	}
	if len(m.Parts) == 0 {
		return nil
	}
	parts, err := h.Attachments.ToStore(owner, m.Parts)
	if err != nil {
		return err
	}
	links := map[string]string{}
	for i, p := range parts {
		for name, path := range p.LocalFiles() {
			if err := h.Attachments.CheckPath(path); err != nil {
				return fmt.Errorf("parts[%d].%s: %w", i, name, err)
			}
		}
		o, err := h.keepPart(ctx, owner, p)
		if err != nil {
			return fmt.Errorf("parts[%d].path: %w", i, err)
		}
		if o.Path != "" {
			links[strconv.Itoa(i)] = o.ID()
		}
		if path := message.TextField(p.Raw(), "path"); path != "" {
			if &parts[0] == &m.Parts[0] {
				parts = slices.Clone(parts) // the sender's stay as they are
			}
			parts[i] = p.Named(filepath.Base(path))
		}
	}
	m.Parts = parts
	if len(links) == 0 && m.Meta[message.MetaLinks] == nil {
		return nil
	}
	meta := message.Meta{}
	for k, v := range m.Meta {
		if k != message.MetaLinks { // of the host alone: each is signed
			meta[k] = v
		}
	}
	if len(links) > 0 {
		meta[message.MetaLinks] = marshal(links)
	}
	m.Meta = meta
	return nil
}

// keepPart keeps the bytes of a part that has them inline or by path, and no
// address. What the store does not accept stays without; only a path that may
// not be sent is an error.
func (h *Hub) keepPart(ctx context.Context, owner string, p message.Part) (attach.Object, error) {
	if p.Type != message.TypeVision && p.Type != message.TypeFile {
		return attach.Object{}, nil
	}
	if p.Address() != "" {
		return attach.Object{}, nil
	}
	var o attach.Object
	var err error
	path := message.TextField(p.Raw(), "path")
	claim := attach.Claim{Name: message.TextField(p.Raw(), "fileName"), MimeType: message.TextField(p.Raw(), "mimeType")}
	switch data := message.TextField(p.Raw(), "data"); {
	case path != "":
		o, err = h.Attachments.Copy(ctx, owner, path, claim)
	case data != "":
		var b []byte
		if b, err = base64.StdEncoding.DecodeString(data); err == nil {
			o, err = h.Attachments.PutBytes(ctx, owner, b, claim)
		}
	}
	if errors.Is(err, attach.ErrPath) {
		return attach.Object{}, err
	}
	if err != nil {
		h.Log.Warn("no link made for what a message holds", "owner", owner, "error", err)
	}
	return o, nil
}

// addressed is the message with urls that a far end can read for ttl. It does no
// I/O.
func (h *Hub) addressed(m *message.Message, ttl time.Duration) *message.Message {
	if len(m.Parts) == 0 {
		return m
	}
	out := *m
	out.Parts = h.nameable(h.Attachments.Signed(m.Parts, ttl))
	var links map[string]string
	if json.Unmarshal(m.Meta[message.MetaLinks], &links) == nil && len(links) > 0 {
		out.Parts = append([]message.Part(nil), out.Parts...)
		for i := range out.Parts {
			if id := links[strconv.Itoa(i)]; id != "" {
				out.Parts[i] = out.Parts[i].At(h.Attachments.SignID(id, ttl))
			}
		}
	}
	return &out
}

// nameable is the parts without files that may not be sent by their paths: what
// is stored may be older than the operator's word on which may.
func (h *Hub) nameable(parts []message.Part) []message.Part {
	out := parts
	for i, p := range parts {
		for _, path := range p.LocalFiles() {
			if h.Attachments.MayName(path) {
				continue
			}
			if &out[0] == &parts[0] {
				out = slices.Clone(parts)
			}
			out[i] = p.WithoutLocalFiles()
			break
		}
	}
	return out
}

// inWords is a message as a list of messages shows it. Addresses of this host
// would be of no use there.
func (h *Hub) inWords(m *message.Message) string {
	bare := *m
	bare.Parts = attach.Bare(m.Parts)
	return render.Text(&bare)
}

// Upload makes room for a file that the adapter sends by HTTP. It waits for the
// disk.
func (a *Attachment) Upload(in *wire.Inbound) wire.UploadAck {
	ack := wire.UploadAck{MessageID: in.MessageID}
	h := a.channel.hub
	r, err := h.Attachments.Reserve(a.channel.owner, attach.Claim{Name: in.Later.Name, MimeType: in.Later.MimeType}, in.Later.SizeBytes)
	switch {
	case err == nil:
		ack.AttachmentID, ack.URL = r.Object.ID(), r.URL
		ack.ExpiresAt = r.ExpiresAt.UTC().Format(message.TimeFormat)
	case errors.Is(err, attach.ErrTooLarge), errors.Is(err, attach.ErrType), errors.Is(err, attach.ErrEmpty):
		ack.Error = err.Error()
	case errors.Is(err, attach.ErrTooMany), errors.Is(err, attach.ErrFull):
		ack.Error, ack.Retryable = err.Error(), true
	default:
		h.Log.Error("upload not prepared", "channel", a.channel.name(), "error", err)
		ack.Error, ack.Retryable = "the upload could not be prepared: try again later", true
	}
	return ack
}
