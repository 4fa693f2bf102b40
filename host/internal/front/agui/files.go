package agui

import (
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// admitFiles looks whether the holder may name the files that the message names,
// and gives those that it names by id their address. The error is a *Bad, or the
// disk's.
func (f *Front) admitFiles(h auth.Holder, in *input) error {
	for i, p := range in.message.Parts {
		at := fmt.Sprintf("%s.content[%d]", in.at, i)
		address := p.Address()
		if id := message.TextField(p.Raw(), "attachmentId"); address == "" && id != "" {
			o, err := f.Attachments.Of(h.Ref(), id)
			if err != nil {
				return fileFault(at+".id", err)
			}
			address = f.Attachments.Sign(o.Ref(), http.MethodGet, 0)
			in.message.Parts[i] = p.At(address)
		}
		if address == "" {
			continue
		}
		ref, err := f.Attachments.Admit(f.owner(), address)
		if err != nil {
			return fileFault(at+".url", err)
		}
		if owner := ownerOf(ref); owner != h.Ref() && owner != f.owner() {
			return &Bad{at + ".url", "found an upload of somebody else, expected one of this key"}
		}
	}
	return nil
}

// ownerOf is whose attachment it is.
func ownerOf(ref attach.Ref) string { return path.Base(path.Dir(ref.Path)) }

// owner is whose the files are that agents send.
func (f *Front) owner() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.channel.ID
}

// fileFault tells a file that may not be named from a disk that fails.
func fileFault(at string, err error) error {
	for _, known := range []error{attach.ErrForeign, attach.ErrTraversal, attach.ErrForged, attach.ErrExpired, attach.ErrNotFound, attach.ErrElsewhere} {
		if errors.Is(err, known) {
			return &Bad{at, err.Error()}
		}
	}
	return fmt.Errorf("%s: %w", at, err)
}
