package auth

import (
	"context"
	"net"
	"strings"
	"unicode"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

type visitKey struct{}

// WithHolder says who makes the request of a context. Only what has checked a
// credential may call it.
func WithHolder(ctx context.Context, h Holder) context.Context {
	return context.WithValue(ctx, visitKey{}, h)
}

// HolderOf is who makes the request of a context; false if nobody said so.
func HolderOf(ctx context.Context) (Holder, bool) {
	h, ok := ctx.Value(visitKey{}).(Holder)
	return h, ok
}

// Origin is where a request comes from.
type Origin struct {
	Remote    string // address without port
	UserAgent string // clipped
}

type originKey struct{}

// maxUserAgent bounds what is kept of what a browser calls itself.
const maxUserAgent = 200 // bytes

// WithOrigin says where the request of a context comes from: remote is
// HOST:PORT, as net/http has it.
func WithOrigin(ctx context.Context, remote, userAgent string) context.Context {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		remote = host
	}
	if len(userAgent) > maxUserAgent {
		userAgent = userAgent[:maxUserAgent]
	}
	userAgent = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(userAgent, ""))
	return context.WithValue(ctx, originKey{}, Origin{remote, userAgent})
}

// OriginOf is where the request of a context comes from, as far as it is known.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// By is the audit line of a change that the request of ctx makes. detail is nil
// or becomes a JSON object, and must hold no secret.
func By(ctx context.Context, action, target string, detail any) ledger.Change {
	c := ledger.Change{Actor: nobody, Remote: OriginOf(ctx).Remote, Action: action, Target: target}
	if h, ok := HolderOf(ctx); ok {
		c.Actor, c.Via = h.Name, h.Via()
	}
	if detail != nil {
		c.Detail = mustMarshal(detail)
	}
	return c
}

// nobody is the actor of what needs no credential.
const nobody = "nobody"
