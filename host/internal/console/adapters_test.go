package console

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

var tags = regexp.MustCompile(`(?:\s|<[^>]*>)+`)

// TestAdaptersPage: the page says of each adapter how long its ping took, or that it
// is not known yet, and counts its frames.
func TestAdaptersPage(t *testing.T) {
	now := time.Now()
	took := 12.345
	adapters := []api.Adapter{
		{Channel: "red", Platform: "irc", Protocol: "1.1", Transport: "plugin", Since: api.Time{Time: now}, LastFrameAt: api.Time{Time: now}, FramesIn: 3, FramesOut: 5, RoundTripMS: &took},
		{Channel: "blue", Platform: "matrix", Protocol: "1.0", Transport: "websocket", Since: api.Time{Time: now}, LastFrameAt: api.Time{Time: now}, FramesOut: 18446744073709551615},
	}
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/adapters" {
			t.Errorf("asked for %s", r.URL)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"adapters": adapters})
	})
	h := New(Options{API: answers, Log: slog.New(slog.DiscardHandler), Version: "test", Now: func() time.Time { return now }})
	r := httptest.NewRequest("GET", Path+"adapters", nil)
	r = r.WithContext(auth.WithHolder(r.Context(), auth.Operator()))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text := tags.ReplaceAllString(w.Body.String(), " ")
	red, blue := strings.Index(text, "protocol 1.1, by plugin"), strings.Index(text, "protocol 1.0, by websocket")
	if w.Code != http.StatusOK || red < 0 || blue < red {
		t.Fatalf("%d, red at %d, blue at %d:\n%s", w.Code, red, blue, text)
	}
	for part, want := range map[string][]string{
		text[red:blue]: {"Ping 12.3 ms", "Frames 3 in, 5 out"},
		text[blue:]:    {"Ping not measured yet: the host pings every 54 s", "Frames 0 in, 18446744073709551615 out"},
	} {
		for _, w := range want {
			if !strings.Contains(part, w) {
				t.Errorf("%q is not there:\n%s", w, part)
			}
		}
	}
}
