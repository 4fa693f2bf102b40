package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// span is what an operation is about, which counts for keys that are limited to
// channels.
type span int

const (
	wholeHost span = iota // the host: such a key does not open it
	byChannel             // channels: of those that the holder does not see (find, visible, sees) it knows nothing
)

// Where an operation says what opens it. One that says nothing is opened by the
// key of the data directory, and by who is logged in, alone.
const (
	scopeKey = "scope"
	spanKey  = "span"
)

// scopeOpen is of operations that need no key.
const scopeOpen auth.Scope = "open"

// open makes an operation one that needs no key.
func open(op huma.Operation) huma.Operation {
	op.Metadata = map[string]any{scopeKey: scopeOpen}
	op.Security = nil
	op.Description = "Needs no key: what it takes is the credential."
	return op
}

// opens declares which scope opens an operation, and what it is about.
func opens(scope auth.Scope, about span, op huma.Operation) huma.Operation {
	op.Metadata = map[string]any{scopeKey: scope, spanKey: about}
	op.Security = []map[string][]string{{"key": {string(scope)}}}
	op.Description = "Scope: " + string(scope) + ". A key that is limited to channels does not open it."
	if about == byChannel {
		op.Description = "Scope: " + string(scope) + ". For a key that is limited to channels there are no others."
	}
	if !slices.Contains(op.Errors, http.StatusForbidden) {
		op.Errors = append(slices.Clone(op.Errors), http.StatusForbidden)
	}
	return op
}

// holder tells who holds the key of an Authorization header; without one, who is
// logged in. Errors are auth.ErrInvalid and those of storage.
func (s *server) holder(ctx context.Context, header string) (auth.Holder, error) {
	key, ok := bearer(header)
	if h, known := auth.HolderOf(ctx); known && !ok { // a header of another scheme is a proxy's business
		return h, nil
	}
	switch {
	case !ok:
		return auth.Holder{}, auth.ErrInvalid
	case s.Keys.Valid(key):
		return auth.Operator(), nil
	case s.Gate == nil:
		return auth.Holder{}, auth.ErrInvalid
	}
	return s.Gate.AdmitKey(ctx, key)
}

const noKey = "no valid key: expected Authorization: Bearer KEY with the key in admin.key of the data directory"

// admit lets the holder of a key in whose scope it is; else it is the problem
// to answer with. remote is who shows it.
func (s *server) admit(ctx context.Context, remote, header string, scope auth.Scope, about span) (auth.Holder, error) {
	key, shown := bearer(header)
	if shown {
		if wait := s.Failures.Allow(remote, netguard.Keys); wait > 0 {
			return auth.Holder{}, retryAfter(huma.Error429TooManyRequests(netguard.TooManyFailures), wait)
		}
	}
	h, err := s.holder(ctx, header)
	switch {
	case errors.Is(err, auth.ErrInvalid):
		if shown {
			s.Failures.Failed(remote, netguard.Keys, key)
		}
		why := noKey
		if scope != "" {
			why += ", or one of scope " + string(scope)
		}
		return h, huma.Error401Unauthorized(why)
	case err != nil:
		return h, s.fault(err, "key")
	case !h.May(scope):
		need := "one of scope " + string(scope)
		if scope == "" {
			need = "the operator's"
		}
		return h, huma.Error403Forbidden("the key " + h.Name + " does not open this: expected " + need)
	case h.Limited() && about != byChannel:
		return h, huma.Error403Forbidden("the key " + h.Name + " is limited to channels and does not open this, which is about the whole host")
	}
	return h, nil
}

// headersOf are what an error wants its answer to carry.
func headersOf(err error) http.Header {
	var h huma.HeadersError
	if errors.As(err, &h) {
		return h.GetHeaders()
	}
	return nil
}

// holderOf is who makes the request of an operation.
func holderOf(ctx context.Context) auth.Holder {
	h, _ := auth.HolderOf(ctx)
	return h
}

// authenticate is the gate of all operations.
func (s *server) authenticate(ctx huma.Context, next func(huma.Context)) {
	ctx = huma.WithContext(ctx, auth.WithOrigin(ctx.Context(), ctx.RemoteAddr(), ctx.Header("User-Agent")))
	scope, _ := ctx.Operation().Metadata[scopeKey].(auth.Scope)
	if scope == scopeOpen {
		next(ctx)
		return
	}
	about, _ := ctx.Operation().Metadata[spanKey].(span)
	h, err := s.admit(ctx.Context(), ctx.RemoteAddr(), ctx.Header("Authorization"), scope, about)
	if err != nil {
		var p huma.StatusError
		if errors.As(err, &p); p.GetStatus() == http.StatusUnauthorized {
			ctx.SetHeader("WWW-Authenticate", "Bearer")
		}
		for name, values := range headersOf(err) {
			ctx.SetHeader(name, values[0])
		}
		_ = huma.WriteErr(s.api, ctx, p.GetStatus(), p.Error()) // the client is told or gone
		return
	}
	next(huma.WithContext(ctx, auth.WithHolder(ctx.Context(), h)))
}

// enter is authenticate outside of huma's operations: the request with who makes
// it in its context; false if it has answered.
func (s *server) enter(w http.ResponseWriter, r *http.Request, scope auth.Scope, about span) (*http.Request, auth.Holder, bool) {
	h, err := s.admit(r.Context(), r.RemoteAddr, r.Header.Get("Authorization"), scope, about)
	if err != nil {
		s.refuse(w, err)
		return r, h, false
	}
	ctx := auth.WithOrigin(r.Context(), r.RemoteAddr, r.UserAgent())
	return r.WithContext(auth.WithHolder(ctx, h)), h, true
}

// lease is for answers that go on: a context that ends with the credential of who
// makes the request. end must be called.
func (s *server) lease(ctx context.Context) (_ context.Context, end context.CancelFunc) {
	if s.Gate == nil {
		return context.WithCancel(ctx)
	}
	return s.Gate.Lease(ctx, holderOf(ctx))
}

// visible reads up to n of the channels that are there for who makes the request,
// oldest first, from behind the one with key after.
func (s *server) visible(ctx context.Context, after int64, n int) ([]ledger.Channel, error) {
	h := holderOf(ctx)
	if !h.Limited() {
		return s.Store.Channels(ctx, after, n)
	}
	var out []ledger.Channel
	for _, id := range h.Channels {
		row, err := s.Store.Channel(ctx, id)
		if errors.Is(err, ledger.ErrNotFound) { // deleted
			continue
		}
		if err != nil {
			return nil, err
		}
		if row.Key > after {
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Channel) int { return int(a.Key - b.Key) })
	return out[:min(n, len(out))], nil
}

// sees is for what is read of all channels: it reports whether the one with a key
// is there for who makes the request.
func (s *server) sees(ctx context.Context) (func(channel int64) bool, error) {
	if !holderOf(ctx).Limited() {
		return func(int64) bool { return true }, nil
	}
	rows, err := s.visible(ctx, 0, auth.MaxKeyChannels)
	return func(channel int64) bool {
		return slices.ContainsFunc(rows, func(r ledger.Channel) bool { return r.Key == channel })
	}, err
}

// seesNamed is sees for a channel by its name, such as a plugin's.
func (s *server) seesNamed(ctx context.Context, h auth.Holder, name string) bool {
	if !h.Limited() {
		return true
	}
	row, err := s.Store.Channel(ctx, name)
	return err == nil && h.Sees(row.ID)
}
