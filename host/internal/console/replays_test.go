package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

// halfReplayed is a replay that goes on, and manyDead what there is to replay, as the
// API answers.
const (
	halfReplayed = `{"id":"r","channel_id":"1","channel":"a","state":"running","total":5000,"replayed":1900,"left":100,` +
		`"why":"the channel's queue is full","began_at":"2026-03-04T12:00:00Z","ended_at":null}`
	manyDead = `{"counts":[{"channel_id":"1","channel":"a","reason":"ttl","count":4800},{"channel_id":"1","channel":"a","reason":"unknown_outcome","count":200},` +
		`{"channel_id":"2","channel":"b","reason":"rejected","count":12}],"total":5012,"complete":true}`
)

// TestReplayPage: how far a replay is, is said; the page asks again, also without
// scripts, until it is over.
func TestReplayPage(t *testing.T) {
	answer, status := halfReplayed, http.StatusOK
	var asked []string
	operate := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	})
	now := time.Date(2026, 3, 4, 12, 0, 10, 0, time.UTC)
	h := New(Options{API: operate, Log: slog.New(slog.DiscardHandler), Version: "test", Now: func() time.Time { return now }})
	page := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(auth.WithHolder(context.Background(), auth.Operator()), method, path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	wants := func(text string, want ...string) {
		t.Helper()
		for _, s := range want {
			if !strings.Contains(text, s) {
				t.Errorf("%q is not in\n%s", s, text)
			}
		}
	}
	const again = `<noscript><meta http-equiv="refresh" content="2"></noscript>`
	w := page("GET", Path+"dead/replays/r")
	wants(w.Body.String(), again, `hx-trigger="every 1s"`, "2000 of 5000 messages", `<progress value="2000" max="5000"`, "3000 to do. About 15s to go.", "100 could not be replayed", "queue is full", Path+"dead/replays/r/stop")
	if w := page("POST", Path+"dead/replay?channel=a"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != Path+"dead/replays/r" {
		t.Errorf("begun: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := page("POST", Path+"dead/replays/r/stop"); w.Code != http.StatusSeeOther || asked[len(asked)-1] != "DELETE /api/v1/dead-letters/replays/r" {
		t.Errorf("stopped: %d, asked %q", w.Code, asked)
	}

	answer = strings.NewReplacer("running", "stopped", `"ended_at":null`, `"ended_at":"2026-03-04T12:00:09Z"`).Replace(halfReplayed)
	text := page("GET", Path+"dead/replays/r").Body.String()
	wants(text, "Stopped after 2000 of 5000 messages", "3000 were not come to: they are dead letters still", "Dead letters of a")
	if strings.Contains(text, "every 1s") || strings.Contains(text, again) {
		t.Errorf("it is over and asks again:\n%s", text)
	}
	answer, status = `{"status":404,"title":"Not Found","detail":"no such replay"}`, http.StatusNotFound
	if w := page("GET", Path+"dead/replays/r"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "not known any more") {
		t.Errorf("unknown: %d\n%s", w.Code, w.Body)
	}
}

// TestDeadOf: what was counted is summed by channel; a count that broke off says so.
func TestDeadOf(t *testing.T) {
	n := deadOf(api.DeadCounts{Counts: []api.DeadCount{{ChannelID: "1", Reason: "ttl", Count: 4}, {ChannelID: "1", Reason: "rejected", Count: 3}, {ChannelID: "2", Count: 1}}})
	if len(n) != 2 || n["1"] != 7 || n["2"] != 1 {
		t.Errorf("%v", n)
	}
	if a, b := counted(7, true), counted(7, false); a != "7" || b != "7+" {
		t.Errorf("%s, %s", a, b)
	}
}

// TestBrief: the small pictures are the large ones in less room; where nothing
// happened it is said, and no line is drawn.
func TestBrief(t *testing.T) {
	var full, none strings.Builder
	s := busyHour()
	if err := brief(s, true).Render(t.Context(), &full); err != nil {
		t.Fatal(err)
	}
	if text := full.String(); strings.Count(text, `role="img"`) != 4 || !strings.Contains(text, `hx-get="/console/metrics/charts?brief=1&amp;channel=a&amp;window=hour"`) ||
		!strings.Contains(text, "metrics?channel=a&amp;window=day") || strings.Contains(text, "style=") {
		t.Errorf("found\n%s", text)
	}
	s.Channel, s.Total = "", api.StatPoint{}
	if err := brief(s, false).Render(t.Context(), &none); err != nil {
		t.Fatal(err)
	}
	if text := none.String(); strings.Contains(text, "<svg") || strings.Contains(text, "hx-get") || !strings.Contains(text, "No message came or went in the last hour") {
		t.Errorf("found\n%s", text)
	}
}
