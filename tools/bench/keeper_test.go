package bench

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// registered is a keeper whose connection leads nowhere, that asked four
// questions in two conversations.
func registered(t *testing.T) *keeper {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		_ = ws.WriteMessage(websocket.TextMessage, wire.RegisterAck{OK: true, Protocol: "1.1"}.Append(nil))
		for {
			if _, _, err := ws.ReadMessage(); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	k := newKeeper("c", "token", Scenario{Conversations: 2, Size: 10})
	if _, err := k.register(t.Context(), strings.Replace(server.URL, "http", "ws", 1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.cut)
	k.asked = make([]question, 4)
	k.more.Store(false)
	return k
}

// step is one frame of the host: an acknowledgement of a question, or an answer
// to it under an id; life is the connection on which it comes.
type step struct {
	seq  int
	id   string // "" = acknowledgement
	life int
}

func (k *keeper) play(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		k.life = s.life
		frame := wire.MessageAck{MessageID: strconv.Itoa(s.seq), OK: true}.Append(nil)
		if s.id != "" {
			out := wire.Frame{Type: wire.TypeSend, Text: "echo: " + k.text(s.seq), MessageID: s.id}
			frame = out.Append(nil, wire.Routing{ConversationID: k.conversation(s.seq), ReplyCtx: wire.Raw(strconv.Itoa(s.seq))})
		}
		if err := k.receive(frame); err != nil {
			t.Fatal(err)
		}
	}
}

// all is what a host should say.
var all = []step{{0, "", 1}, {0, "a0", 1}, {1, "", 1}, {1, "a1", 1}, {2, "", 1}, {2, "a2", 1}, {3, "", 1}, {3, "a3", 1}}

func TestFaultsAreSeenByAKeeper(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		want  keeperFaults
		ahead int
	}{
		"ok":                {all, keeperFaults{}, 1},
		"newestComesAgain":  {append(all[:8:8], step{3, "a3", 2}, step{3, "a3", 3}), keeperFaults{Repeated: 2}, 1},
		"twiceAtOnce":       {append(all[:8:8], step{3, "a3", 1}), keeperFaults{Duplicated: 1}, 1},
		"twiceAtOnceLater":  {append(all[:8:8], step{3, "a3", 2}, step{3, "a3", 2}), keeperFaults{Repeated: 1, Duplicated: 1}, 1},
		"underAnotherID":    {append(all[:8:8], step{3, "a4", 2}), keeperFaults{Duplicated: 1}, 1},
		"idOfAnother":       {append(all[:7:7], step{3, "a1", 1}), keeperFaults{Duplicated: 1}, 1},
		"afterALaterOne":    {append(all[:8:8], step{1, "a1", 2}), keeperFaults{Overtaken: 1}, 1},
		"outOfOrder":        {[]step{{0, "", 1}, {2, "a2", 1}, {0, "a0", 1}}, keeperFaults{Disordered: 2}, 1},
		"neverAsked":        {[]step{{4, "", 1}, {4, "a4", 1}}, keeperFaults{Foreign: 2}, 1},
		"acknowledgedTwice": {[]step{{0, "", 1}, {0, "", 1}}, keeperFaults{Duplicated: 1}, 1},
		"twoComeAgain":      {append(all[:8:8], step{1, "a1", 2}, step{3, "a3", 2}), keeperFaults{Repeated: 2}, 2},
		"twoInDisorder":     {append(all[:8:8], step{3, "a3", 2}, step{1, "a1", 2}), keeperFaults{Repeated: 1, Disordered: 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			k := registered(t)
			k.Acks = c.ahead
			k.play(t, c.steps)
			if got := k.keeperFaults; got != c.want {
				t.Errorf("found %+v, expected %+v", got, c.want)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		k := registered(t)
		if err := k.receive(wire.MessageAck{MessageID: "0", Error: "no"}.Append(nil)); err != nil || k.Refused != 1 || k.Refusal != "no" {
			t.Errorf("found %+v, %v", k.keeperFaults, err)
		}
	})
	for cursor, stored := range map[string]int{"": 0, "2": 3, "3": 2} {
		k := registered(t)
		if k.resume(cursor, stored); k.Cursor != 1 {
			t.Errorf("cursor %q with %d stored is taken", cursor, stored)
		}
	}
}

func TestFaultsOfAKeepersHistoryAreSeen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(history) history // newest first: 3's answer, 3, 2's answer, 2, …
		want   keeperFaults
	}{
		"ok":           {func(h history) history { return h }, keeperFaults{}},
		"lost":         {func(h history) history { return h[2:] }, keeperFaults{Lost: 1}},
		"lostAnswer":   {func(h history) history { return h[1:] }, keeperFaults{Lost: 1}},
		"twice":        {func(h history) history { return append(h[:2:2], h...) }, keeperFaults{Duplicated: 1}},
		"otherText":    {func(h history) history { h[1].Text = "?"; return h }, keeperFaults{Foreign: 1}},
		"otherID":      {func(h history) history { h[0].ID = "?"; return h }, keeperFaults{Foreign: 1}},
		"foreign":      {func(h history) history { return append(h, entry{ReplyCtx: []byte("9")}) }, keeperFaults{Foreign: 1}},
		"disorder":     {func(h history) history { h[1], h[5] = h[5], h[1]; return h }, keeperFaults{Disordered: 1}},
		"notDelivered": {func(h history) history { h[0].State = "sent"; return h }, keeperFaults{Unsettled: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			k := registered(t)
			k.play(t, all)
			var log history
			for seq := range 4 {
				id := strconv.Itoa(seq)
				log = append(log, entry{ID: "q" + id, Direction: "in", Text: k.text(seq), ReplyCtx: json.RawMessage(id)},
					entry{ID: "a" + id, Direction: "out", Text: "echo: " + k.text(seq), ReplyCtx: json.RawMessage(id), ReplyTo: "q" + id, State: "delivered", Handle: "h" + id})
			}
			slices.Reverse(log)
			k.judge(c.change(log))
			if k.keeperFaults != c.want {
				t.Errorf("found %+v, expected %+v", k.keeperFaults, c.want)
			}
		})
	}
}
