package bridge_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// places are the four places of a token; "-" leaves one out.
type places struct{ query, header, bearer, frame string }

func (p places) open(t *testing.T, h *hosttest.Host) *hosttest.Client {
	t.Helper()
	c := hosttest.Credentials{Header: http.Header{}}
	if p.query != "-" {
		c.Query = url.Values{"token": {p.query}}
	}
	if p.header != "-" {
		c.Header.Set("X-Bridge-Token", p.header)
	}
	if p.bearer != "-" {
		c.Header.Set("Authorization", p.bearer)
	}
	made := h.Dial(t, c)
	if p.frame == "-" {
		made.Send(`{"type":"register","platform":"test"}`)
	} else {
		made.Send(`{"type":"register","platform":"test","token":` + hosttest.Quote(p.frame) + `}`)
	}
	return made
}

func TestTokenPlaces(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	good := hosttest.TokenOf(h.Channel("places").Name)
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
				c.Want(hosttest.AckFailed(tt.want))
				c.WantClose(1008, tt.want)
				return
			}
			c.Want(hosttest.AckOK)
			c.Works()
		})
	}
}

func TestTokenNull(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	h.Channel("null")
	c := h.Dial(t, hosttest.Credentials{})
	c.Send(`{"type":"register","token":null}`)
	c.Want(hosttest.AckFailed("missing token"))
	c.WantClose(1008, "missing token")
}

func TestTokenInQueryRefused(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) {
		s.API = func(_ *hosttest.Host, o *api.Options) { o.RefuseQueryToken = true }
	})
	good := hosttest.TokenOf(h.Channel("refused").Name)
	c := places{good, "-", "-", "-"}.open(t, h)
	c.Want(hosttest.AckFailed("missing token"))
	c.WantClose(1008, "missing token")
	c = places{"wrong-but-not-looked-at", good, "-", "-"}.open(t, h)
	c.Want(hosttest.AckOK)
	c.Works()
}

// A token that opens nothing gets one answer, whatever is wrong with it.
func TestTokenInvalid(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	h := hosttest.Start(t, func(s *hosttest.Setup) {
		s.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	by := ledger.Change{Actor: "test", Action: "test"}
	refused := func(t *testing.T, token string) {
		t.Helper()
		c := places{"-", "-", "-", token}.open(t, h)
		c.Want(hosttest.AckFailed("invalid token"))
		c.WantClose(1008, "invalid token")
	}
	accepted := func(t *testing.T, token string) {
		t.Helper()
		c := places{"-", "-", "-", token}.open(t, h)
		c.Want(hosttest.AckOK)
		_ = c.WS.Close()
	}
	t.Run("unknown", func(t *testing.T) {
		refused(t, "pnt_0000000000000000000000000000")
		refused(t, "x")
		refused(t, strings.Repeat("x", 4096))
	})
	t.Run("revoked", func(t *testing.T) {
		row := h.Channel("revoked")
		accepted(t, hosttest.TokenOf("revoked"))
		tokens, err := h.Store.Credentials(t.Context(), ledger.OfChannel(row.Key), 0, 10)
		if err != nil || len(tokens) != 1 {
			t.Fatal(tokens, err)
		}
		if err := h.Store.RevokeCredential(t.Context(), ledger.OfChannel(row.Key), tokens[0].ID, by); err != nil {
			t.Fatal(err)
		}
		refused(t, hosttest.TokenOf("revoked"))
	})
	t.Run("expired", func(t *testing.T) {
		row := h.Channel("expired")
		secret := auth.NewCredential("lives-for-an-hour", time.Now().Add(time.Hour))
		if _, err := h.Store.RotateCredential(t.Context(), ledger.OfChannel(row.Key), secret, time.Now().Add(24*time.Hour), by); err != nil {
			t.Fatal(err)
		}
		accepted(t, "lives-for-an-hour")
		ahead.Store(int64(61 * time.Minute))
		defer ahead.Store(0)
		refused(t, "lives-for-an-hour")
		accepted(t, hosttest.TokenOf("expired"))
	})
	t.Run("channel disabled", func(t *testing.T) {
		h.Channel("disabled")
		h.Operator("PATCH", "/channels/disabled", `{"enabled":false}`, 200)
		refused(t, hosttest.TokenOf("disabled"))
		h.Operator("PATCH", "/channels/disabled", `{"enabled":true}`, 200)
		accepted(t, hosttest.TokenOf("disabled"))
	})
	t.Run("channel deleted", func(t *testing.T) {
		h.Channel("deleted")
		accepted(t, hosttest.TokenOf("deleted"))
		h.Operator("DELETE", "/channels/deleted", "", 204)
		refused(t, hosttest.TokenOf("deleted"))
	})
}

func TestTokenOfOperator(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	const own = "sixteen bytes &+%/ü"
	h.Operator("POST", "/channels", `{"name":"own","token":"`+own+`"}`, 201)
	for name, p := range map[string]places{"query": {own, "-", "-", "-"}, "frame": {"-", "-", "-", own}} {
		t.Run(name, func(t *testing.T) {
			c := p.open(t, h)
			c.Want(hosttest.AckOK)
			c.Works()
		})
	}
	h.Operator("POST", "/channels", `{"name":"short","token":"fifteen bytes !"}`, 422)
	h.Operator("POST", "/channels", `{"name":"padded","token":" sixteen bytes and more"}`, 422)
	h.Operator("POST", "/channels", `{"name":"again","token":"`+own+`"}`, 409)
}

// A channel may have several tokens; each leads to the same slot.
func TestTokensTogether(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	h.Channel("several")
	h.Operator("POST", "/channels/several/tokens", `{"token":"the-second-token","overlap":"1h"}`, 201)
	first := places{"-", "-", "-", hosttest.TokenOf("several")}.open(t, h)
	first.Want(hosttest.AckOK)
	first.Works()
	second := places{"-", "-", "-", "the-second-token"}.open(t, h)
	second.Want(hosttest.AckOK)
	first.WantClose(4001, "replaced by a newer connection")
	second.Works()
}

func TestTokenLastUsed(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("used")
	used := func() time.Time {
		tokens, err := h.Store.Credentials(t.Context(), ledger.OfChannel(row.Key), 0, 10)
		if err != nil || len(tokens) != 1 {
			t.Fatal(tokens, err)
		}
		return tokens[0].LastUsedAt
	}
	if at := used(); !at.IsZero() {
		t.Fatalf("used at %s before its first use", at)
	}
	before := time.Now().Truncate(time.Millisecond)
	h.Attach(t, row)
	await.Until(t, "last use is written", func() bool { return !used().Before(before) })
}
