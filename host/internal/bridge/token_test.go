package bridge_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// places are the four places of a token; "-" leaves one out.
type places struct{ query, header, bearer, frame string }

func (p places) open(t *testing.T, h *host) *client {
	t.Helper()
	c := credentials{header: http.Header{}}
	if p.query != "-" {
		c.query = url.Values{"token": {p.query}}
	}
	if p.header != "-" {
		c.header.Set("X-Bridge-Token", p.header)
	}
	if p.bearer != "-" {
		c.header.Set("Authorization", p.bearer)
	}
	made := h.dial(t, c)
	if p.frame == "-" {
		made.send(`{"type":"register","platform":"test"}`)
	} else {
		made.send(`{"type":"register","platform":"test","token":` + quote(p.frame) + `}`)
	}
	return made
}

func TestTokenPlaces(t *testing.T) {
	t.Parallel()
	h := start(t)
	good := tokenOf(h.channel("places").Name)
	const bad = "a-token-that-nobody-made"
	for name, tt := range map[string]struct {
		places
		want string // "" = let in
	}{
		"query alone":                   {places{good, "-", "-", "-"}, ""},
		"header alone":                  {places{"-", good, "-", "-"}, ""},
		"bearer alone":                  {places{"-", "-", "Bearer " + good, "-"}, ""},
		"bearer in lower case":          {places{"-", "-", "bearer " + good, "-"}, ""},
		"bearer in upper case, trimmed": {places{"-", "-", "BEARER   " + good + "  ", "-"}, ""},
		"frame alone":                   {places{"-", "-", "-", good}, ""},
		"query wins over all":           {places{good, bad, "Bearer " + bad, bad}, ""},
		"header wins over the later":    {places{"-", good, "Bearer " + bad, bad}, ""},
		"bearer wins over the frame":    {places{"-", "-", "Bearer " + good, bad}, ""},
		"empty query does not count":    {places{"", good, "-", "-"}, ""},
		"empty query, token in frame":   {places{"", "-", "-", good}, ""},
		"another scheme is no token":    {places{"-", "-", "Basic " + good, good}, ""},
		"empty bearer does not count":   {places{"-", "-", "Bearer ", good}, ""},
		"wrong query is not rescued":    {places{bad, good, "Bearer " + good, good}, "invalid token"},
		"wrong header is not rescued":   {places{"-", bad, "Bearer " + good, good}, "invalid token"},
		"wrong bearer is not rescued":   {places{"-", "-", "Bearer " + bad, good}, "invalid token"},
		"wrong frame":                   {places{"-", "-", "-", bad}, "invalid token"},
		"frame is not trimmed":          {places{"-", "-", "-", good + " "}, "invalid token"},
		"token in another case":         {places{"-", "-", "-", strings.ToUpper(good)}, "invalid token"},
		"none":                          {places{"-", "-", "-", "-"}, "missing token"},
		"empty everywhere":              {places{"", "-", "-", ""}, "missing token"},
		"only another scheme":           {places{"-", "-", "Basic " + good, "-"}, "missing token"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tt.open(t, h)
			if tt.want != "" {
				c.want(ackFailed(tt.want))
				c.wantClose(1008, tt.want)
				return
			}
			c.want(ackOK)
			c.works()
		})
	}
}

func TestTokenNull(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.channel("null")
	c := h.dial(t, credentials{})
	c.send(`{"type":"register","token":null}`)
	c.want(ackFailed("missing token"))
	c.wantClose(1008, "missing token")
}

func TestTokenInQueryRefused(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.refuseQuery = true })
	good := tokenOf(h.channel("refused").Name)
	c := places{good, "-", "-", "-"}.open(t, h)
	c.want(ackFailed("missing token"))
	c.wantClose(1008, "missing token")
	c = places{"wrong-but-not-looked-at", good, "-", "-"}.open(t, h)
	c.want(ackOK)
	c.works()
}

// A token that opens nothing gets one answer, whatever is wrong with it.
func TestTokenInvalid(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	h := start(t, func(s *setup) {
		s.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	by := ledger.Change{Actor: "test", Action: "test"}
	refused := func(t *testing.T, token string) {
		t.Helper()
		c := places{"-", "-", "-", token}.open(t, h)
		c.want(ackFailed("invalid token"))
		c.wantClose(1008, "invalid token")
	}
	accepted := func(t *testing.T, token string) {
		t.Helper()
		c := places{"-", "-", "-", token}.open(t, h)
		c.want(ackOK)
		_ = c.ws.Close()
	}
	t.Run("unknown", func(t *testing.T) {
		refused(t, "pnt_0000000000000000000000000000")
		refused(t, "x")
		refused(t, strings.Repeat("x", 4096))
	})
	t.Run("revoked", func(t *testing.T) {
		row := h.channel("revoked")
		accepted(t, tokenOf("revoked"))
		tokens, err := h.store.Credentials(t.Context(), ledger.OfChannel(row.Key), 0, 10)
		if err != nil || len(tokens) != 1 {
			t.Fatal(tokens, err)
		}
		if err := h.store.RevokeCredential(t.Context(), ledger.OfChannel(row.Key), tokens[0].ID, by); err != nil {
			t.Fatal(err)
		}
		refused(t, tokenOf("revoked"))
	})
	t.Run("expired", func(t *testing.T) {
		row := h.channel("expired")
		secret := auth.NewCredential("lives-for-an-hour", time.Now().Add(time.Hour))
		if _, err := h.store.RotateCredential(t.Context(), ledger.OfChannel(row.Key), secret, time.Now().Add(24*time.Hour), by); err != nil {
			t.Fatal(err)
		}
		accepted(t, "lives-for-an-hour")
		ahead.Store(int64(61 * time.Minute))
		defer ahead.Store(0)
		refused(t, "lives-for-an-hour")
		accepted(t, tokenOf("expired"))
	})
	t.Run("channel disabled", func(t *testing.T) {
		h.channel("disabled")
		h.operator("PATCH", "/channels/disabled", `{"enabled":false}`, 200)
		refused(t, tokenOf("disabled"))
		h.operator("PATCH", "/channels/disabled", `{"enabled":true}`, 200)
		accepted(t, tokenOf("disabled"))
	})
	t.Run("channel deleted", func(t *testing.T) {
		h.channel("deleted")
		accepted(t, tokenOf("deleted"))
		h.operator("DELETE", "/channels/deleted", "", 204)
		refused(t, tokenOf("deleted"))
	})
}

func TestTokenOfOperator(t *testing.T) {
	t.Parallel()
	h := start(t)
	const own = "sixteen bytes &+%/ü"
	h.operator("POST", "/channels", `{"name":"own","token":"`+own+`"}`, 201)
	for name, p := range map[string]places{"query": {own, "-", "-", "-"}, "frame": {"-", "-", "-", own}} {
		t.Run(name, func(t *testing.T) {
			c := p.open(t, h)
			c.want(ackOK)
			c.works()
		})
	}
	h.operator("POST", "/channels", `{"name":"short","token":"fifteen bytes !"}`, 422)
	h.operator("POST", "/channels", `{"name":"padded","token":" sixteen bytes and more"}`, 422)
	h.operator("POST", "/channels", `{"name":"again","token":"`+own+`"}`, 409)
}

// A channel may have several tokens; each leads to the same slot.
func TestTokensTogether(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.channel("several")
	h.operator("POST", "/channels/several/tokens", `{"token":"the-second-token","overlap":"1h"}`, 201)
	first := places{"-", "-", "-", tokenOf("several")}.open(t, h)
	first.want(ackOK)
	first.works()
	second := places{"-", "-", "-", "the-second-token"}.open(t, h)
	second.want(ackOK)
	first.wantClose(4001, "replaced by a newer connection")
	second.works()
}

func TestTokenLastUsed(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("used")
	used := func() time.Time {
		tokens, err := h.store.Credentials(t.Context(), ledger.OfChannel(row.Key), 0, 10)
		if err != nil || len(tokens) != 1 {
			t.Fatal(tokens, err)
		}
		return tokens[0].LastUsedAt
	}
	if at := used(); !at.IsZero() {
		t.Fatalf("used at %s before its first use", at)
	}
	before := time.Now().Truncate(time.Millisecond)
	h.attach(t, row)
	eventually(t, "last use is written", func() bool { return !used().Before(before) })
}
