package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// faulty answers every message with the frames that answer makes of it.
func faulty(t *testing.T, answer func(n int, in *wire.Inbound) []string) target {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		for n := 0; ; n++ {
			_, frame, err := ws.ReadMessage()
			if err != nil {
				return
			}
			in, werr := wire.DecodeInbound(frame)
			if werr != nil {
				t.Errorf("frame is not valid: %s: %s", werr.Message, frame)
				return
			}
			for _, out := range answer(n, in) {
				if err := ws.WriteMessage(websocket.TextMessage, []byte(out)); err != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return target{name: "faulty", url: strings.Replace(server.URL, "http", "ws", 1)}
}

func send(in *wire.Inbound) string {
	return fmt.Sprintf(`{ "type": "send", "text": "echo", "reply_ctx" : %s }`, in.ReplyCtx) // as other libraries space it
}

func TestFaultsOfAServerAreSeen(t *testing.T) {
	var held string
	for name, c := range map[string]struct {
		answer func(n int, in *wire.Inbound) []string
		want   Count
	}{
		"ok": {func(_ int, in *wire.Inbound) []string { return []string{send(in)} }, Count{Sent: 10, Answered: 10}},
		"typingIsNoAnswer": {func(_ int, in *wire.Inbound) []string {
			return []string{strings.Replace(send(in), "send", "start_typing", 1), send(in)}
		}, Count{Sent: 10, Answered: 10}},
		"twice": {func(n int, in *wire.Inbound) []string {
			if n == 3 {
				return []string{send(in), send(in)}
			}
			return []string{send(in)}
		}, Count{Sent: 10, Answered: 10, Duplicated: 1}},
		"lost": {func(n int, in *wire.Inbound) []string {
			if n == 3 {
				return nil
			}
			return []string{send(in)}
		}, Count{Sent: 10, Answered: 9, Lost: 1}},
		"disorder": {func(n int, in *wire.Inbound) []string {
			switch n {
			case 4: // and 6 is of the same conversation
				held = send(in)
				return nil
			case 6:
				return []string{send(in), held}
			}
			return []string{send(in)}
		}, Count{Sent: 10, Answered: 10, Disordered: 1}},
		"stray": {func(n int, in *wire.Inbound) []string {
			if n == 0 {
				return []string{send(in), `{"type":"send","reply_ctx":"000009-00000-000000000"}`, `{"type":"send","reply_ctx":null}`}
			}
			return []string{send(in)}
		}, Count{Sent: 10, Answered: 10, Stray: 2, Refusal: `a stray answer: {"type":"send","reply_ctx":"000009-00000-000000000"}`}},
		"refused": {func(n int, in *wire.Inbound) []string {
			if n == 9 {
				return []string{`{"type":"error","code":"rate_limited"}`}
			}
			return []string{send(in)}
		}, Count{Sent: 10, Answered: 9, Refused: 1, Refusal: `{"type":"error","code":"rate_limited"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Scenario{Conns: 1, Window: 4, Conversations: 2, Size: 220}
			most := await.Limit
			if c.want.Lost > 0 {
				most = 3 * time.Second // this one never comes
			}
			got, err := measure(t.Context(), faulty(t, c.answer), s, 1, span{most, 10, most})
			if err != nil {
				t.Fatal(err)
			}
			if c.want.Lost > 0 { // it says how long it was waited for
				if !strings.Contains(got.Refusal, "connection 0: no answer to 1 messages") {
					t.Errorf("reason %q, expected that the answer was given up", got.Refusal)
				}
				got.Refusal = ""
			}
			if got.Count != c.want || got.Clean() != (name == "ok" || name == "typingIsNoAnswer") {
				t.Errorf("found %+v, expected %+v", got.Count, c.want)
			}
		})
	}
}

// clientLog is a connection that sent five messages and saw answers to three.
func clientLog(t *testing.T) (*peer, history) {
	frames, err := newTemplate(1, 0, Scenario{Conversations: 1, Size: 220})
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{template: frames, tally: tally{sent: 5, last: make([]int, 1)}}
	var log history
	for seq := range 4 {
		if seq < 3 {
			p.note(seq)
		}
		ctx := json.RawMessage(fmt.Sprintf(`"000001-00000-%09d"`, seq))
		q, a := strconv.Itoa(2*seq), strconv.Itoa(2*seq+1)
		log = append(history{
			{ID: a, Direction: "out", Text: "echo: " + p.textOf(seq), ReplyCtx: ctx, ReplyTo: q},
			{ID: q, Direction: "in", Text: p.textOf(seq), ReplyCtx: ctx},
		}, log...)
	}
	return p, log
}

func TestFaultsOfAHistoryAreSeen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(history) history // newest first: 3's answer, 3, 2's answer, 2, …
		want   KillReport
	}{
		"ok":           {func(h history) history { return h }, KillReport{Unanswered: 1}},
		"lost":         {func(h history) history { return h[4:] }, KillReport{Lost: 1}},
		"lostAnswer":   {func(h history) history { return append(h[:2:2], h[3:]...) }, KillReport{Unanswered: 1, Lost: 1}},
		"twice":        {func(h history) history { return append(h[:4:4], h[2:]...) }, KillReport{Unanswered: 1, Duplicated: 1}},
		"torn":         {func(h history) history { return h[1:] }, KillReport{Torn: 1}},
		"otherText":    {func(h history) history { h[3].Text = "?"; return h }, KillReport{Unanswered: 1, Torn: 1}},
		"otherAnswers": {func(h history) history { h[2].ReplyTo = "0"; return h }, KillReport{Unanswered: 1, Torn: 1}},
		"foreign":      {func(h history) history { return append(h, entry{Direction: "in", ReplyCtx: []byte("7")}) }, KillReport{Unanswered: 1, Foreign: 1}},
		"disorder":     {func(h history) history { h[1], h[3] = h[3], h[1]; return h }, KillReport{Unanswered: 1, Disordered: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p, log := clientLog(t)
			var got KillReport
			got.judge(p, c.change(log))
			c.want.Sent, c.want.Answered = 5, 3
			if !reflect.DeepEqual(got, c.want) || got.clean() != (name == "ok") {
				t.Errorf("found %+v, expected %+v", got, c.want)
			}
		})
	}
	t.Run("gap", func(t *testing.T) {
		p, log := clientLog(t)
		p.got[0], p.answered = 0, 0
		var got KillReport
		if got.judge(p, log[:6]); got.Gaps != 1 || got.clean() {
			t.Errorf("found %+v, expected a gap", got)
		}
	})
}

func TestFramesAreValidAndOfTheSizeAskedFor(t *testing.T) {
	for _, size := range []int{200, 1000, 100_000} {
		frames, err := newTemplate(7, 3, Scenario{Conversations: 4, Size: size})
		if err != nil {
			t.Fatal(err)
		}
		for _, seq := range []int{0, 5, 123456789} {
			payload := frames.message(seq)[frames.header:]
			in, werr := wire.DecodeInbound(payload)
			if werr != nil {
				t.Fatalf("size %d: %s", size, werr.Message)
			}
			conv := fmt.Sprintf("b00003-%06d", seq%4)
			if len(payload) != size || in.Text != frames.textOf(seq) || in.ConversationID != conv || in.SessionKey != "bench:"+conv {
				t.Errorf("size %d, sequence %d: found %d bytes: %.300s", size, seq, len(payload), payload)
			}
			if got, ok := frames.sequence(value(payload, keyReplyCtx)); !ok || got != seq {
				t.Errorf("sequence: found %d, expected %d", got, seq)
			}
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := 1; i <= 10_000; i++ {
		h.add(time.Duration(i) * time.Microsecond)
	}
	for q, want := range map[float64]float64{0.5: 5000, 0.9: 9000, 0.99: 9900, 1: 10_000} {
		if got := Micros(h.quantile(q)); got < want || got > want*1.02 {
			t.Errorf("quantile %g: found %g, expected %g", q, got, want)
		}
	}
	for _, ns := range []uint64{0, 63, 64, 65, 127, 128, 1 << 20, 1<<40 + 12345} {
		if top := bucketTop(bucketOf(ns)); top < ns || float64(top) > float64(ns)*1.02+1 || bucketOf(top) != bucketOf(ns) {
			t.Errorf("%d falls into a bucket that ends with %d", ns, top)
		}
	}
}
