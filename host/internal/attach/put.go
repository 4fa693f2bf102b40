package attach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Claim is what the sender says of a file.
type Claim struct {
	Name     string // for people; may be ""
	MimeType string // may be ""
	Limit    int64  // in bytes, if lower than the store's; 0 = the store's
	By       string // the key that uploads, if it has to do with it beside the owner; "" = none
}

// Put keeps the file that r holds. ErrOwner, ErrEmpty, ErrTooLarge, ErrType,
// ErrTooMany or ErrFull if it can't be taken; after any error nothing is kept. ctx is looked at
// between reads: a read that hangs is for the owner of r to end.
func (s *Store) Put(ctx context.Context, owner string, r io.Reader, c Claim) (Object, error) {
	if err := checkOwner(owner); err != nil {
		return Object{}, err
	}
	whole, sniffed, err := look(ctx, r)
	if err != nil {
		return Object{}, err
	}
	t, err := s.types.settle(sniffed, essence(c.MimeType))
	if err != nil {
		return Object{}, err
	}
	if err := s.hasRoom(0); err != nil { // how much it will be is not known
		return Object{}, err
	}
	most := s.limit(c)
	giveBack, err := s.allowed.take(most, owner, payerOf(owner, c))
	if err != nil {
		return Object{}, err
	}
	ext := extension(t)
	p := newPlace(owner, ext)
	s.claim(p) // always ours: the name is new
	defer s.release(p)
	size, err := s.receive(p, whole, most)
	if err != nil { // what came is paid for: to send too much is no way around the limit
		return Object{}, err
	}
	giveBack(most - size)
	m := side{MimeType: t, SizeBytes: size, Name: cleanName(c.Name, ext), CreatedAt: s.now().UTC()}
	if err := s.publish(p, m); err != nil {
		return Object{}, err
	}
	return m.object(p), nil
}

// payerOf is the key that pays beside the owner; "" = none does.
func payerOf(owner string, c Claim) string {
	if c.By == "" || c.By == owner {
		return ""
	}
	return "key " + c.By
}

// Uploaded is an attachment as its sender is told of it. URL is signed, for a
// while.
type Uploaded struct {
	Bucket   string `json:"bucket"`
	Path     string `json:"path"`
	MimeType string `json:"mime_type"`
	URL      string `json:"url"`
}

// Upload is Put for who will name the file by its url.
func (s *Store) Upload(ctx context.Context, owner string, r io.Reader, c Claim) (Uploaded, error) {
	o, err := s.Put(ctx, owner, r, c)
	if err != nil {
		return Uploaded{}, err
	}
	return Uploaded{o.Bucket, o.Path, o.MimeType, s.Sign(o.Ref(), http.MethodGet, 0)}, nil
}

// PutBytes is Put for what came inline, decoded.
func (s *Store) PutBytes(ctx context.Context, owner string, b []byte, c Claim) (Object, error) {
	if c.Limit == 0 && len(b) > 0 {
		c.Limit = int64(len(b))
	}
	return s.Put(ctx, owner, bytes.NewReader(b), c)
}

// hasRoom reports ErrFull if the disk may not take so many bytes more.
func (s *Store) hasRoom(bytes int64) error {
	if s.room == nil {
		return nil
	}
	if err := s.room(bytes); err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return nil
}

func (s *Store) limit(c Claim) int64 {
	if c.Limit > 0 {
		return min(c.Limit, s.max)
	}
	return s.max
}

// look reads the head of a file and tells its type; whole reads all of it.
func look(ctx context.Context, r io.Reader) (whole io.Reader, sniffed string, err error) {
	r = &body{ctx, r}
	head := make([]byte, 0, sniffBytes)
	for len(head) < cap(head) && err == nil { // io.ReadFull would hide a stream that broke
		var n int
		n, err = r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
	}
	switch {
	case errors.Is(err, errBody):
		return nil, "", err
	case len(head) == 0:
		return nil, "", fmt.Errorf("%w: found no bytes, expected some", ErrEmpty)
	case err != nil:
		return bytes.NewReader(head), sniff(head), nil
	}
	return io.MultiReader(bytes.NewReader(head), r), sniff(head), nil
}

// body is the sender's stream: it ends with ctx, and its errors are told from
// the disk's.
type body struct {
	ctx context.Context
	r   io.Reader
}

func (b *body) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, fmt.Errorf("%w: %w", errBody, context.Cause(b.ctx))
	}
	n, err := b.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // one that is wrapped is a broken stream
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	return n, err
}

// receive writes r to the temporary file of p, up to limit.
func (s *Store) receive(p place, r io.Reader, limit int64) (int64, error) {
	n, err := writeNew(s.dir, p.temp(), io.LimitReader(r, limit+1))
	if err != nil {
		return 0, fmt.Errorf("keep attachment: %w", err)
	}
	if n > limit {
		return 0, errors.Join(fmt.Errorf("%w: found more than %d bytes, expected at most that", ErrTooLarge, limit), remove(s.dir, p.temp()))
	}
	return n, nil
}

// publish makes what was received an attachment: first what is beside it, then
// the bytes, with which it exists. After an error nothing is there.
func (s *Store) publish(p place, m side) error {
	s.dirs.RLock()
	defer s.dirs.RUnlock()
	b, err := json.Marshal(m)
	if err == nil {
		err = makeDirs(s.dir, Bucket, Bucket+"/"+folder, p.dir())
	}
	if err == nil {
		err = writeFile(s.dir, p.tempSide(), p.side(), b)
	}
	if err == nil {
		err = rename(s.dir, p.temp(), p.bytes())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep attachment: %w", err), remove(s.dir, p.temp()), remove(s.dir, p.bytes()), remove(s.dir, p.side()))
	}
	s.count(m.SizeBytes + int64(len(b)))
	return nil
}
