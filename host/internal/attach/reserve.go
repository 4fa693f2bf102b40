package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"
)

// Reservation is an upload that may be made once, by a PUT to URL.
type Reservation struct {
	Object    Object    // what it is to be; not there yet
	URL       string    // signed for PUT
	ExpiresAt time.Time // of both
}

// promised is what is kept of a reservation, as JSON.
type promised struct {
	Path      string    `json:"path"`
	MimeType  string    `json:"mime_type"`
	SizeBytes int64     `json:"size_bytes"`
	Name      string    `json:"name"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Reserve announces a file of size bytes, which a client sends later and
// elsewhere, within DefaultTTL. The bytes must turn out to be of the type that
// it declares; application/octet-stream, which stands for none, takes any that
// is accepted. Errors as those of Put.
func (s *Store) Reserve(owner string, c Claim, size int64) (Reservation, error) {
	if err := checkOwner(owner); err != nil {
		return Reservation{}, err
	}
	if size <= 0 {
		return Reservation{}, fmt.Errorf("%w: found %d bytes, expected some", ErrEmpty, size)
	}
	if limit := s.limit(c); size > limit {
		return Reservation{}, fmt.Errorf("%w: found %d bytes, expected at most %d", ErrTooLarge, size, limit)
	}
	t, err := s.types.promise(essence(c.MimeType))
	if err != nil {
		return Reservation{}, err
	}
	if err := s.hasRoom(size); err != nil {
		return Reservation{}, err
	}
	now := s.now()
	p, expires := newPlace(owner, extension(t)), now.Add(DefaultTTL).Truncate(time.Second)
	m := promised{Path: p.ref().Path, MimeType: t, SizeBytes: size, Name: cleanName(c.Name, extension(t)), ExpiresAt: expires.UTC()}
	if err := s.allowed.promise(p, expires); err != nil {
		return Reservation{}, err
	}
	b, err := json.Marshal(m)
	if err == nil {
		s.claim(p) // always ours: the name is new
		defer s.release(p)
		err = writeFile(s.dir, p.tempSide(), p.reserved(), b)
	}
	if err != nil {
		s.allowed.kept(p)
		return Reservation{}, fmt.Errorf("reserve attachment: %w", err)
	}
	return Reservation{Object: m.side(now).object(p), URL: s.sign(p.ref(), http.MethodPut, now, expires), ExpiresAt: expires}, nil
}

func (m promised) side(at time.Time) side {
	return side{MimeType: m.MimeType, SizeBytes: m.SizeBytes, Name: m.Name, CreatedAt: at.UTC()}
}

// complete makes the reserved attachment out of r; size is what the sender says
// it holds, -1 = nothing said. An upload that breaks may be tried again.
// ErrTaken if it was done or is under way, ErrNotFound if it is not reserved,
// else as Put; ErrShort if r holds less than was reserved.
func (s *Store) complete(ctx context.Context, ref Ref, r io.Reader, size int64) (Object, error) {
	p, err := ref.place()
	if err != nil {
		return Object{}, err
	}
	if !s.claim(p) {
		return Object{}, fmt.Errorf("%w: found another upload, expected one at a time", ErrTaken)
	}
	defer s.release(p)
	m, err := s.promise(p)
	if err != nil {
		return Object{}, err
	}
	if size >= 0 {
		if err := m.checkSize(size); err != nil {
			return Object{}, err
		}
	}
	if err := s.hasRoom(m.SizeBytes); err != nil {
		return Object{}, err
	}
	whole, sniffed, err := look(ctx, r)
	if err != nil {
		return Object{}, err
	}
	t, err := s.types.settle(sniffed, m.MimeType)
	if err != nil {
		return Object{}, err
	}
	if t != m.MimeType && m.MimeType != octetStream {
		return Object{}, fmt.Errorf("%w: found %s, expected %s as reserved", ErrType, t, m.MimeType)
	}
	if _, err := s.allowed.take(m.SizeBytes, p.owner); err != nil {
		return Object{}, err
	}
	n, err := s.receive(p, whole, m.SizeBytes)
	if err != nil {
		return Object{}, err
	}
	if err := m.checkSize(n); err != nil {
		return Object{}, errors.Join(err, remove(s.dir, p.temp()))
	}
	done := m.side(s.now())
	if err := s.publish(p, done); err != nil {
		return Object{}, err
	}
	s.allowed.kept(p)
	_ = remove(s.dir, p.reserved()) // else Sweep's; promise sees that it is done
	return done.object(p), nil
}

// promise finds what is reserved at a place and not yet done.
func (s *Store) promise(p place) (promised, error) {
	if _, err := lstat(s.dir, p.bytes()); err == nil {
		return promised{}, fmt.Errorf("%w: found it there, expected one upload", ErrTaken)
	}
	b, err := readSmall(s.dir, p.reserved())
	if errors.Is(err, fs.ErrNotExist) {
		return promised{}, fmt.Errorf("%w: found no reservation of %s", ErrNotFound, p.ref())
	}
	var m promised
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	switch {
	case err != nil:
		return promised{}, fmt.Errorf("read reservation: %w", err)
	case m.Path != p.ref().Path:
		return promised{}, fmt.Errorf("%w: found the reservation of another path, expected that of %s", ErrNotFound, p.ref())
	case !s.now().Before(m.ExpiresAt):
		return promised{}, fmt.Errorf("%w: found a reservation that is over", ErrExpired)
	}
	return m, nil
}

func (m promised) checkSize(n int64) error {
	switch {
	case n > m.SizeBytes:
		return fmt.Errorf("%w: found %d bytes, expected %d as reserved", ErrTooLarge, n, m.SizeBytes)
	case n < m.SizeBytes:
		return fmt.Errorf("%w: found %d bytes, expected %d as reserved", ErrShort, n, m.SizeBytes)
	}
	return nil
}
