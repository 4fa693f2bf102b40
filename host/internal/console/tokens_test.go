package console

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// TestTokenRevoked: the page says who was cut off, if anybody was; a channel that nobody can
// enter any more, or soon, warns; pages and audit log call a token the same.
func TestTokenRevoked(t *testing.T) {
	v := visit(t)
	row := v.Channel("red")
	v.Attach(t, row)
	var made struct{ ID, Hint string }
	v.Must(&made, "POST", "/channels/red/tokens", `{"overlap":"720h"}`)
	var list struct{ Tokens []struct{ ID, Hint string } }
	v.Must(&list, "GET", "/channels/red/tokens", "")
	first := list.Tokens[0]
	says := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(v.words(), w) {
				t.Errorf("%s does not say %q:\n%s", v.path, w, v.words())
			}
		}
	}
	v.open("channels/red")
	says(made.ID+" …"+list.Tokens[1].Hint, first.ID+" …"+first.Hint+" the adapter came with it")
	if strings.Contains(v.words(), "No token is live") || strings.Contains(v.words(), "token ends soon") {
		t.Errorf("it warns: %s", v.words())
	}
	v.open("channels/red/tokens/" + made.ID + "/revoke")
	says("Nobody is attached with it now.")
	v.send("/revoke", nil)
	says("The token is revoked. Nobody was attached with it.")
	if !v.Attached(row) {
		t.Error("the adapter was cut off by another token's end")
	}
	v.open("channels/red/tokens/" + first.ID + "/revoke")
	says("Attached now:", "It came with this token")
	v.send("/revoke", nil)
	says("The adapter that was attached with it has been cut off.", "No token is live")
	v.open("")
	says("no token Channel red None of its tokens lets an adapter in.")
	await.Until(t, "it is cut off", func() bool { return !v.Attached(row) })
	v.open("audit?target=red&action=" + url.QueryEscape("token.revoke"))
	says("token "+first.ID+" …"+first.Hint, "token "+made.ID)

	v.Must(nil, "POST", "/channels/red/tokens", `{"overlap":"0s","expires":"100h"}`)
	v.open("channels/red")
	says("The last token ends soon")
	v.Make("blue", "")
	v.Must(nil, "POST", "/channels/blue/tokens", `{"overlap":"0s","expires":"100h"}`)
	v.open("channels?q=blue")
	says("token ends Its last token ends in 4 days")
	v.open("channels?trouble=true")
	says("blue")
	v.Must(nil, "POST", "/channels/red/tokens", `{"overlap":"0s"}`)
	v.open("channels/red")
	if v.find(func(n *html.Node) bool { return attr(n, "class") == "problem warn" }) != nil {
		t.Errorf("it warns still: %s", v.words())
	}
	v.open("channels/red/disable")
	v.send("/disable", nil)
	says("Channel red is disabled. Nobody was attached.")
}

// TestLimitsShown: the page of a channel says how much may wait in it, as it is set and as
// it is by default.
func TestLimitsShown(t *testing.T) {
	v := visit(t)
	v.Make("red", "")
	v.open("channels/red")
	if want := "At most 10000 messages wait, each for 24 h. One that is refused for now is tried 10 times."; !strings.Contains(v.words(), want) {
		t.Errorf("it does not say %q:\n%s", want, v.words())
	}
	v.Must(nil, "PATCH", "/channels/red", `{"queue_limits":{"length":7,"ttl_seconds":60,"attempts":3}}`)
	v.open("channels/red")
	if want := "At most 7 messages wait, each for 60 s. One that is refused for now is tried 3 times."; !strings.Contains(v.words(), want) {
		t.Errorf("it does not say %q:\n%s", want, v.words())
	}
}
