package attach

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Stored is the address of an attachment as messages are stored with it: the
// path of a signed url, without origin and token.
func (r Ref) Stored() string { return SignPath + r.String() }

// refOf is the inverse of Stored.
func refOf(address string) (Ref, bool) {
	rest, ok := strings.CutPrefix(address, SignPath)
	if !ok {
		return Ref{}, false
	}
	bucket, path, ok := strings.Cut(rest, "/")
	return Ref{bucket, path}, ok
}

// ID is the attachment's name on the wire.
func (o Object) ID() string { return o.Ref().String() }

// Of finds a finished attachment of the owner by its ID, or ErrNotFound, for a
// message that is about to name it.
func (s *Store) Of(owner, id string) (Object, error) {
	bucket, path, _ := strings.Cut(id, "/")
	r := Ref{bucket, path}
	p, err := r.place()
	if err != nil || p.owner != owner || !s.lend(p) {
		return Object{}, fmt.Errorf("%w: found no upload of this name", ErrNotFound)
	}
	o, err := s.Stat(r)
	if err != nil {
		s.unlend(p)
	}
	return o, err
}

// named finds the addresses of attachments among the texts of stored parts, and
// their IDs among those of metadata (message.MetaLinks).
var named = regexp.MustCompile(`"(?:` + SignPath + `)?(` + Bucket + `/` + folder + `/[A-Za-z0-9_-]{1,64}/[0-9a-f-]{36}\.[a-z0-9]{1,8})"`)

// maxNamed bounds how many attachments a message names: a hundred parts, and as
// many links, are far below.
const maxNamed = 256

// Names lists the attachments that a stored message names, by their IDs.
func Names(parts, meta []byte) []string {
	var ids []string
	for _, b := range [][]byte{parts, meta} {
		if !bytes.Contains(b, []byte(folder)) {
			continue
		}
		for _, m := range named.FindAllSubmatch(b, maxNamed) {
			ids = append(ids, string(m[1]))
		}
	}
	return ids
}

// SignID is Sign for reading an attachment by its ID.
func (s *Store) SignID(id string, ttl time.Duration) string {
	bucket, path, _ := strings.Cut(id, "/")
	return s.Sign(Ref{bucket, path}, http.MethodGet, ttl)
}

// Signed is what others get of stored parts: addresses of attachments become
// urls that may be read for ttl. The parts given stay as they are.
func (s *Store) Signed(parts []message.Part, ttl time.Duration) []message.Part {
	return readdress(parts, func(r Ref) string { return s.Sign(r, http.MethodGet, ttl) })
}

// Bare is stored parts without the addresses of attachments.
func Bare(parts []message.Part) []message.Part {
	return readdress(parts, func(Ref) string { return "" })
}

// Objects are the attachments that stored parts have the addresses of.
func (s *Store) Objects(parts []message.Part) []Object {
	var out []Object
	for _, p := range parts {
		if ref, ok := refOf(p.Address()); ok {
			if o, err := s.Stat(ref); err == nil {
				out = append(out, o)
			}
		}
	}
	return out
}

func readdress(parts []message.Part, to func(Ref) string) []message.Part {
	out := parts
	for i, p := range parts {
		ref, ok := refOf(p.Address())
		if !ok {
			continue
		}
		if &out[0] == &parts[0] {
			out = slices.Clone(parts)
		}
		out[i] = p.At(to(ref))
	}
	return out
}

// ToStore is the inverse of Signed for what somebody sends into the channel of this
// owner: a url of this host loses its origin and token, if Admit takes it. The error
// names the part.
func (s *Store) ToStore(owner string, parts []message.Part) ([]message.Part, error) {
	out := parts
	for i, p := range parts {
		address := p.Address()
		if !strings.Contains(address, SignPath) && !strings.Contains(address, "?") {
			continue
		}
		ref, err := s.Admit(owner, address)
		switch {
		case strings.HasPrefix(address, SignPath): // as only the host may write it
			err = fmt.Errorf("%w: found no origin and no token, expected both", ErrForged)
		case errors.Is(err, ErrForeign):
			continue // somebody else's, whatever its path is
		}
		if err != nil {
			return nil, fmt.Errorf("parts[%d].url: %w", i, err)
		}
		if &out[0] == &parts[0] {
			out = slices.Clone(parts)
		}
		if place, err := ref.place(); err == nil {
			s.lend(place)
		}
		out[i] = p.At(ref.Stored())
	}
	return out, nil
}
