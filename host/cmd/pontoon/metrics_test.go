package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// fetch gets a page, with the key if one is given.
func fetch(t *testing.T, url, key string) (status int, page string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// busyHost is a host in which something of everything has happened that the
// metrics tell of.
func busyHost(t *testing.T) (h *host, metrics string) {
	t.Helper()
	h = startHost(t, "--metrics-listen", "127.0.0.1:0")
	shown := regexp.MustCompile(`Metrics are at (\S+)\n`).FindStringSubmatch(h.out.String())
	if shown == nil {
		t.Fatalf("it does not say where the metrics are:\n%s", h.out.String())
	}
	p := h.attach(h.channel("busy", ""))
	p.ask("room", "one", "echo: one")
	p.say("room", "!stream")
	p.next("send")
	h.channel("quiet", `,"queue":true`)
	h.must(nil, "POST", "/channels/quiet/messages", `{"conversation_id":"c","text":"waits"}`)
	h.refused("pnt_0123456789012345678901234567")
	h.request("POST", "/sessions", `{"name":"me","password":"wrong"}`)
	h.ask("GET", "/api/v1/channels", "", "Cookie", "pontoon=pns_ended")
	return h, shown[1]
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h, without := busyHost(t)
	if status, page := fetch(t, h.url+"/metrics", ""); status != http.StatusUnauthorized || strings.Contains(page, "pontoon_") {
		t.Errorf("without a key: %d %s", status, page)
	}
	if status, _ := fetch(t, h.url+"/metrics", "pnk_wrong"); status != http.StatusUnauthorized {
		t.Errorf("with a wrong key: %d", status)
	}
	for name, ask := range map[string][2]string{"with the key": {h.url + "/metrics", h.key}, "on a listener of its own": {without, ""}} {
		status, page := fetch(t, ask[0], ask[1])
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, page)
		}
		for _, want := range []string{
			`pontoon_adapter_attached{channel="busy"} 1`,
			`pontoon_adapter_attached{channel="quiet"} 0`,
			`pontoon_queue_messages{channel="quiet"} 1`,
			`pontoon_http_requests_total{method="POST",route="/api/v1/channels/{id}/messages",status="202"} 1`,
			`pontoon_http_requests_total{method="GET",route="/api/v1/channels/bridge/ws",status="101"} 2`,
			`pontoon_auth_failures_total{credential="channel_token"} 1`,
			`pontoon_auth_failures_total{credential="api_key"} 1`,
			`pontoon_auth_failures_total{credential="login"} 2`,
			`pontoon_agent_away{agent="echo"} 0`,
			`pontoon_store_failing 0`,
			`pontoon_scrape_errors 0`,
		} {
			if !strings.Contains(page, "\n"+want+"\n") {
				t.Errorf("%s: %s is not there", name, want)
			}
		}
		if strings.Contains(page, h.key) || strings.Contains(page, "pnt_") {
			t.Errorf("%s: a secret is shown", name)
		}
	}
	if status, _ := fetch(t, strings.TrimSuffix(without, "/metrics")+"/api/v1/channels", ""); status != http.StatusNotFound {
		t.Errorf("the listener without a key shows more: %d", status)
	}
}

// The listener that asks for no key stands behind the same edge as the host: foreign
// names, headers that are too large, bodies and too many connections are refused there.
func TestMetricsListenEdge(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--metrics-listen", "127.0.0.1:0")
	shown := regexp.MustCompile(`Metrics are at http://(\S+)/metrics\n`).FindStringSubmatch(h.out.String())
	if shown == nil {
		t.Fatalf("it does not say where the metrics are:\n%s", h.out.String())
	}
	at := *h
	at.url = "http://" + shown[1]
	for name, want := range map[string]int{"evil.example": 421, "evil.example:" + shown[1][strings.LastIndex(shown[1], ":")+1:]: 421, "localhost": 200, "127.0.0.1": 200, "[::1]:9": 200} {
		if a, page := at.ask("GET", "/metrics", "", "Host", name); a.StatusCode != want || want != 200 && strings.Contains(page, "pontoon_") {
			t.Errorf("Host %s: %d %.100s", name, a.StatusCode, page)
		}
	}
	a, _ := at.ask("GET", "/metrics", "")
	for _, header := range []string{"X-Content-Type-Options", "X-Frame-Options", "Content-Security-Policy", "Referrer-Policy"} {
		if a.Header.Get(header) == "" {
			t.Errorf("an answer without %s", header)
		}
	}
	if a, _ := at.ask("GET", "/metrics", "a body"); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("with a body: %d", a.StatusCode)
	}
	if a, _ := at.ask("GET", "/metrics", "", "X-Long", strings.Repeat("x", 32<<10)); a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: %d", a.StatusCode)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	refused := false
	for range maxScrapers + 64 { // 32 more than may are told so, the others cut off
		c, err := net.Dial("tcp", shown[1])
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			refused = true
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
			refused = true
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	if !refused {
		t.Error("any number of connections is served")
	}
}

func TestMetricsListenRefused(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"0.0.0.0:9464": "take a loopback address", ":9464": "take a loopback address", "192.0.2.1:1": "take a loopback address",
		"here": "--metrics-listen: found \"here\", expected HOST:PORT", "127.0.0.1:70000": "expected a number from 0 to 65535",
	} {
		r := runCommand(t, nil, "", "serve", "--data", t.TempDir(), "--metrics-listen", address)
		if r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", address, r)
		}
	}
}

// TestStats: what was recorded before a restart is still shown after it, by the
// API and the command.
func TestStats(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.attach(h.channel("talk", ""))
	for _, text := range []string{"one", "two"} {
		p.ask("room", text, "echo: "+text)
	}
	h.stop() // which records what there is
	database, err := sql.Open("sqlite", filepath.Join(h.data, "pontoon.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := database.Exec("UPDATE minute SET at = at - 5"); err != nil { // as if that was some minutes ago
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	h.again()
	var got struct {
		Channel, Window string
		Step            int `json:"step_seconds"`
		Total           struct {
			Received, Sent, Failed int64
			P50                    *float64 `json:"latency_p50_seconds"`
		}
		Points []struct {
			At       time.Time
			Received int64
		}
	}
	h.json(&got, "stats", "talk")
	if got.Channel != "talk" || got.Window != "hour" || got.Step != 60 || len(got.Points) != 60 || got.Total.Received != 2 || got.Total.Sent != 2 || got.Total.P50 == nil {
		t.Errorf("got %+v", got)
	}
	var day struct {
		Step   int `json:"step_seconds"`
		Total  struct{ Received int64 }
		Points []json.RawMessage
	}
	h.must(&day, "GET", "/statistics?window=day", "")
	if day.Step != 600 || len(day.Points) != 144 || day.Total.Received != 2 {
		t.Errorf("of a day: %d points of %d s, %d received", len(day.Points), day.Step, day.Total.Received)
	}
	out := h.cli("stats", "--window", "day")
	for _, want := range []string{"all channels, from ", "received     2 ", "sent         2 ", "failed       0 ", "latency p95  ", "█"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if status, text := h.request("GET", "/statistics?channel=nobody", ""); status != http.StatusNotFound || !strings.Contains(text, "not found") {
		t.Errorf("of no channel: %d %s", status, text)
	}
	if status, _ := h.request("GET", "/statistics?window=year", ""); status != http.StatusUnprocessableEntity {
		t.Errorf("of a year: %d", status)
	}
	if r := runCommand(t, h.env(), "", "stats", "--window", "year"); r.code != 2 || !strings.Contains(r.err, `found "year", expected hour or day`) {
		t.Errorf("of a year: %+v", r)
	}
}

func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		values []float64
		most   int
		want   string
	}{
		{nil, 10, ""}, {[]float64{0, 0}, 10, "··"}, {[]float64{0, 1, 8}, 10, "·▂█"}, {[]float64{1, 8, 0, 0, 4}, 3, "█·▅"}, {[]float64{0.001, 1000}, 10, "▁█"},
	} {
		if got := sparkline(c.values, c.most); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
	for v, want := range map[float64]string{0.00005: "50 µs", 0.0123: "12.3 ms", 2: "2 s", 75: "75 s"} {
		if got := shortTime(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
