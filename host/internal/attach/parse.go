package attach

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// maxURL is over any url that Sign makes: a token and a path, percent-encoded.
const maxURL = 16 << 10

// maxShown bounds a foreign origin in an error; a token is longer.
const maxShown = 80

// Parse is the inverse of Sign for a url that a client sends back: signed by
// this host for reading, not expired, and of an attachment that exists.
// Otherwise ErrForeign, ErrTraversal, ErrForged, ErrExpired or ErrNotFound; any
// other error is the disk's.
func (s *Store) Parse(raw string) (Ref, error) {
	if len(raw) > maxURL {
		return Ref{}, fmt.Errorf("%w: found %d bytes, expected at most %d", ErrForeign, len(raw), maxURL)
	}
	rest, query, err := s.own(raw)
	if err != nil {
		return Ref{}, err
	}
	ref, err := s.admit(rest, query, http.MethodGet)
	if err != nil {
		return Ref{}, err
	}
	if _, err := s.Stat(ref); err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// Admit is Parse for a url that a message into the channel of this owner names:
// ErrElsewhere if the attachment is another channel's, by whatever name of the host. Who names one in a message may
// read it for as long as there is the message, so the url alone does not suffice.
func (s *Store) Admit(owner, raw string) (Ref, error) {
	ref, err := s.Parse(raw)
	if errors.Is(err, ErrForeign) {
		if sealed, ok := s.sealed(raw); ok && !s.mayName(owner, sealed) {
			err = errElsewhere
		}
	}
	if err != nil {
		return Ref{}, err
	}
	if !s.mayName(owner, ref) {
		return Ref{}, errElsewhere
	}
	return ref, nil
}

var errElsewhere = fmt.Errorf("%w: expected one of this channel", ErrElsewhere)

// mayName reports whether messages into the channel of this owner may name the
// attachment.
func (s *Store) mayName(owner string, ref Ref) bool {
	p, err := ref.place()
	return err == nil && (p.owner == owner || s.ofKeys.Load() == owner && isKey(p.owner))
}

// sealed is what a token of this host in a url opens for reading now, wherever the url
// seems to lead: a host has several names, and a path can be written in several ways.
func (s *Store) sealed(raw string) (Ref, bool) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxURL {
		return Ref{}, false
	}
	values, _ := url.ParseQuery(u.RawQuery) // what can be read of it
	for _, token := range values["token"] {
		c, err := s.keys.unseal(token)
		if err != nil || c.Method != http.MethodGet || s.now().Unix() >= c.Expires {
			continue
		}
		bucket, path, _ := strings.Cut(c.URL, "/")
		ref := Ref{bucket, path}
		if _, err := s.Stat(ref); err == nil {
			return ref, true
		}
	}
	return Ref{}, false
}

// KeysUploadTo names the channel, by its id, to which what keys upload belongs: such a
// file has the key as its owner.
func (s *Store) KeysUploadTo(channel string) { s.ofKeys.Store(channel) }

// isKey tells the owner of what a key uploaded from a channel.
func isKey(owner string) bool {
	_, err := uuid.Parse(owner)
	return err != nil
}

// own takes a url of this host apart: what is behind SignPath, still encoded,
// and the query. The errors of url.Parse quote the url, token and all, and are
// not passed on.
func (s *Store) own(raw string) (rest, query string, err error) {
	base, err := url.Parse(strings.TrimSuffix(s.base(), "/"))
	if err != nil || base.Host == "" {
		return "", "", fmt.Errorf("%w: the host has no public url yet", ErrForeign)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil {
		return "", "", fmt.Errorf("%w: found no plain url, expected one of %s", ErrForeign, origin(base))
	}
	if got := origin(u); got != origin(base) {
		if len(got) > maxShown {
			got = "another origin"
		}
		return "", "", fmt.Errorf("%w: found %q, expected %s", ErrForeign, got, origin(base))
	}
	rest, ok := strings.CutPrefix(u.EscapedPath(), base.EscapedPath()+SignPath)
	if !ok {
		return "", "", fmt.Errorf("%w: found another path, expected one under %s", ErrForeign, base.EscapedPath()+SignPath)
	}
	return rest, u.RawQuery, nil
}

// origin is scheme, host and port; the port also if it is the scheme's own.
func origin(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// admit checks BUCKET/PATH, percent-encoded, and the token in query: nil error
// if it allows the method now. It does not look at the disk.
func (s *Store) admit(rest, query, method string) (Ref, error) {
	ref, err := decodePath(rest)
	if err != nil {
		return Ref{}, err
	}
	values, err := url.ParseQuery(query)
	if tokens := values["token"]; err != nil || len(tokens) != 1 {
		return Ref{}, fmt.Errorf("%w: found %d tokens, expected one", ErrForged, len(tokens))
	}
	c, err := s.keys.unseal(values.Get("token"))
	switch {
	case err != nil:
		return Ref{}, err
	case c.URL != ref.String():
		return Ref{}, fmt.Errorf("%w: found the token of another path, expected one of this", ErrForged)
	case c.Method != method:
		return Ref{}, fmt.Errorf("%w: found the token of another method, expected one of %s", ErrForged, method)
	case s.now().Unix() >= c.Expires:
		return Ref{}, fmt.Errorf("%w: found one that is over, expected one that is signed for now", ErrExpired)
	}
	if _, err := ref.place(); err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// decodePath decodes each segment exactly once; the first is the bucket.
func decodePath(rest string) (Ref, error) {
	segments := strings.Split(rest, "/")
	for i, raw := range segments {
		s, err := url.PathUnescape(raw)
		why := fault(s)
		if err != nil {
			why = "percent-encoding that can't be read"
		}
		if why != "" {
			return Ref{}, fmt.Errorf("%w: found %s, expected plain names", ErrTraversal, why)
		}
		segments[i] = s
	}
	if len(segments) < 2 {
		return Ref{}, fmt.Errorf("%w: found no path behind the bucket, expected one", ErrTraversal)
	}
	return Ref{Bucket: segments[0], Path: strings.Join(segments[1:], "/")}, nil
}
