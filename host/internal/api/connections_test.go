package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// wantLines waits until these are the lines of the history, oldest first; one that ends in *
// may go on.
func wantLines(t *testing.T, h *hosttest.Host, query string, want ...string) {
	t.Helper()
	var got []string
	await.UntilElse(t, func() bool {
		var list struct {
			Connections []struct {
				What, Channel, Agent, Remote, Why string
				Hint                              string `json:"token_hint"`
				Code, Count                       int
			}
		}
		h.Must(&list, "GET", "/connections"+query, "")
		got = nil
		for _, c := range list.Connections {
			got = append(got, fmt.Sprintf("%s %s%s …%s %s %d×%d %s", c.What, c.Channel, c.Agent, c.Hint, c.Remote, c.Count, c.Code, c.Why))
		}
		slices.Reverse(got)
		return slices.EqualFunc(got, want, func(got, want string) bool {
			begins, more := strings.CutSuffix(want, "*")
			return got == want || more && strings.HasPrefix(got, begins)
		})
	}, func() string {
		return fmt.Sprintf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	})
}

// The history tells who came, why it went, and who was refused with which token.
func TestConnectionsOfChannel(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	token := h.Make("shop", "")
	hint := token[len(token)-4:]
	attached := "attached shop …" + hint + " 127.0.0.1 1×0 "
	replaced := "left shop …" + hint + " 127.0.0.1 1×4001 replaced by a newer connection"
	first := h.Peer(token)
	second := h.Peer(token) // takes its place
	first.Closed(4001)
	wantLines(t, h, "?channel=shop", attached, attached, replaced)
	_ = second.WS.Close()
	wantLines(t, h, "?channel=shop", attached, attached, replaced, "left shop …"+hint+" 127.0.0.1 1×0 *")

	unknown := "refused  … 127.0.0.1 2×1008 the token is none of this host's"
	h.Refused("pnt_wrong_wrong_wrong_wrong")
	h.Refused("pnt_wrong_wrong_wrong_wrong")
	wantLines(t, h, "?what=refused", unknown)
	h.Must(nil, "PATCH", "/channels/shop", `{"enabled":false}`)
	h.Refused(token)
	wantLines(t, h, "?channel=shop&what=refused", "refused shop …"+hint+" 127.0.0.1 1×1008 the channel is disabled")
	p := h.PeerDial("", http.Header{"X-Bridge-Token": {token}})
	p.Send(hosttest.Frame{"type": "message", "text": "x"})
	p.Next("register_ack")
	wantLines(t, h, "?what=refused", unknown, "refused shop *", "refused  … 127.0.0.1 1×1008 first frame must be *")
	if a := h.Request(h.Key, "GET", "/connections?channel=shop&agent=x", ""); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("channel and agent: %d %s", a.Status, a.Body)
	}
	if a := h.Request(h.NewKey("k", `"scopes":["read"]`), "GET", "/connections", ""); a.Status != http.StatusForbidden {
		t.Errorf("a key that only reads: %d %s", a.Status, a.Body)
	}
}

// The same of an agent that dials in.
func TestConnectionsOfAgent(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	var made struct{ Key string }
	h.Must(&made, "POST", "/agents", `{"name":"helper","kind":"websocket"}`)
	hint := made.Key[len(made.Key)-4:]
	hello := func(key string) *websocket.Conn {
		t.Helper()
		ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+h.Addr+agentwire.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		t.Cleanup(func() { _ = ws.Close() })
		if err := ws.WriteJSON(map[string]string{"type": "hello", "key": key}); err != nil {
			t.Fatal(err)
		}
		if err := ws.SetReadDeadline(await.Deadline()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ws.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		return ws
	}
	there := hello(made.Key)
	attached := "attached helper …" + hint + " 127.0.0.1 1×0 "
	wantLines(t, h, "?agent=helper", attached)
	_ = there.Close()
	wantLines(t, h, "?agent=helper", attached, "left helper …"+hint+" 127.0.0.1 1×0 *")
	hello("pna_wrong_wrong_wrong_wrong")
	wantLines(t, h, "?what=refused", "refused  … 127.0.0.1 1×1008 the key is none of this host's")
	var keys struct{ Keys []struct{ ID string } }
	h.Must(&keys, "GET", "/agents/helper/keys", "")
	h.Must(nil, "DELETE", "/agents/helper/keys/"+keys.Keys[0].ID, "")
	hello(made.Key)
	wantLines(t, h, "?agent=helper&what=refused", "refused helper …"+hint+" 127.0.0.1 1×1008 the key is revoked")
}
