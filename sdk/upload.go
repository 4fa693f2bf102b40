package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// maxSpool bounds what Upload keeps in a temporary file of a reader that does
// not say how much it holds. Hosts take far less.
const maxSpool = 1 << 30

// uploads does no redirects: the url is the host's own.
var uploads = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Upload brings a file to the host, for an Event's Attachments: what it returns is
// a wire.Attachment's AttachmentID, good for this channel. r is read to its end,
// or up to its size if it is an io.Seeker or has Len() int; a reader that is
// neither goes through a temporary file. mimeType must be what the bytes are.
//
// It waits for the connection as Deliver does. An error of the host says why it
// takes no such file, or that its disk is full.
func (h *Host) Upload(ctx context.Context, name, mimeType string, r io.Reader) (attachmentID string, err error) {
	body, size, done, err := measured(r)
	if err != nil {
		return "", fmt.Errorf("upload %q: %w", name, err)
	}
	defer done()
	granted, err := h.reserve(ctx, wire.Later{Name: name, MimeType: mimeType, SizeBytes: size})
	if err == nil {
		err = put(ctx, granted.URL, mimeType, body, size)
	}
	if err != nil {
		return "", fmt.Errorf("upload %q: %w", name, err)
	}
	return granted.AttachmentID, nil
}

// reserve asks the host where to put the file.
func (h *Host) reserve(ctx context.Context, what wire.Later) (*wire.UploadAck, error) {
	if what.Name == "" || what.MimeType == "" || max(len(what.Name), len(what.MimeType)) > wire.MaxField {
		return nil, fmt.Errorf("expected a name and a type, of at most %d bytes", wire.MaxField)
	}
	for {
		l, err := h.links.wait(ctx)
		if err != nil {
			return nil, err
		}
		if l.protocol == wire.V10 {
			return nil, fmt.Errorf("the host speaks protocol 1.0: %w", errLacks)
		}
		in := wire.Inbound{Type: wire.TypeUpload, MessageID: h.ids.next(), Later: &what}
		a, err := l.ask(ctx, in.MessageID, in.Append(nil))
		switch {
		case errors.Is(err, errNoTurn), errors.Is(err, errNoAnswer):
			return nil, err
		case err != nil:
			h.links.drop(l)
		case a.upload != nil && a.upload.Error == "":
			return a.upload, nil
		case a.upload != nil:
			return nil, &RejectedError{Reason: a.upload.Error, Retryable: a.upload.Retryable}
		case a.refuse != nil:
			return nil, &RejectedError{Reason: a.refuse.Error(), Retryable: a.refuse.Retryable()}
		default: // the acknowledgement of a frame that was one too many for now
			return nil, &RejectedError{Reason: a.ack.Error, Retryable: a.ack.Retryable}
		}
	}
}

// put sends the bytes.
func put(ctx context.Context, address, mimeType string, body io.Reader, size int64) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, address, io.NopCloser(body))
	if err != nil {
		return errors.New("the host gave an address that is none") // which holds a secret
	}
	r.ContentLength, r.Close = size, true // files are rare: no connection is kept for the next
	r.Header.Set("Content-Type", mimeType)
	resp, err := uploads.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // it only says why
	if resp.StatusCode == http.StatusCreated {
		return nil
	}
	var problem struct{ Detail string }
	if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		problem.Detail = resp.Status
	}
	return &RejectedError{Reason: problem.Detail, Retryable: resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests}
}

// measured is r with its size. done frees what that took.
func measured(r io.Reader) (body io.Reader, size int64, done func(), err error) {
	done = func() {}
	if v, ok := r.(io.Seeker); ok {
		if size, err = left(v); err == nil {
			return io.LimitReader(r, size), size, done, nil
		} // else it is a pipe, for instance
	}
	if v, ok := r.(interface{ Len() int }); ok {
		return r, int64(v.Len()), done, nil
	}
	head, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil || len(head) < 1<<20 {
		return bytes.NewReader(head), int64(len(head)), done, err
	}
	f, err := os.CreateTemp("", "pontoon-upload-")
	if err != nil {
		return nil, 0, done, err
	}
	done = func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	size, err = io.Copy(f, io.LimitReader(io.MultiReader(bytes.NewReader(head), r), maxSpool+1))
	if err == nil && size > maxSpool {
		err = fmt.Errorf("found more than %d bytes", maxSpool)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, 0, func() {}, err
	}
	return f, size, done, nil
}

// left is how much there is from where s stands, and leaves it there.
func left(s io.Seeker) (int64, error) {
	at, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	end, err := s.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	_, err = s.Seek(at, io.SeekStart)
	return end - at, err
}

// withoutURL is the error of a request without its url, which is a secret.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
