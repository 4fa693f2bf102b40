package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// TestConditions: green needs somebody attached, and says when it was heard.
func TestConditions(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	before := api.Time{Time: now.Add(-time.Hour)}
	state := func(s string) *string { return &s }
	attached := &api.Adapter{LastFrameAt: api.Time{Time: now.Add(-12 * time.Second)}}
	for name, c := range map[string]struct {
		channel api.Channel
		adapter *api.Adapter
		want    tone
		why     string
	}{
		"attached":    {api.Channel{Enabled: true, Health: api.Health{Attached: true}}, attached, good, "Heard 12 s ago."},
		"disabled":    {api.Channel{Health: api.Health{Attached: true}}, attached, idle, "Nobody can attach"},
		"neverUsed":   {api.Channel{Enabled: true}, nil, waiting, "No adapter has used it"},
		"gone":        {api.Channel{Enabled: true, Health: api.Health{LastInboundAt: &before}}, nil, warning, "refused"},
		"goneQueue":   {api.Channel{Enabled: true, Queue: true, Health: api.Health{LastSentAt: &before}}, nil, warning, "wait in the queue"},
		"agentAway":   {api.Channel{Enabled: true, Agent: "helper", Health: api.Health{Attached: true, AgentAway: true}}, attached, warning, "helper can't be asked"},
		"refused":     {api.Channel{Enabled: true, Health: api.Health{Attached: true, Platform: &api.PlatformStatus{State: "refused", Reason: "wrong password"}}}, attached, fault, "It says: wrong password"},
		"lost":        {api.Channel{Enabled: true, Health: api.Health{Attached: true, Platform: &api.PlatformStatus{State: "reconnecting"}}}, attached, warning, "tries again by itself"},
		"connected":   {api.Channel{Enabled: true, Health: api.Health{Attached: true, Platform: &api.PlatformStatus{State: "connected"}}}, attached, good, "Heard 12 s ago."},
		"quarantined": {api.Channel{Enabled: true, Health: api.Health{Process: state("quarantined")}}, nil, fault, "failed too often"},
		"backoff":     {api.Channel{Enabled: true, Health: api.Health{Process: state("backoff")}}, nil, warning, "started again"},
		"starting":    {api.Channel{Enabled: true, Health: api.Health{Process: state("starting")}}, nil, about, "has not attached yet"},
		"front":       {api.Channel{Enabled: true, Kind: "agui", Health: api.Health{Attached: true}}, nil, about, "Clients come"},
	} {
		t.Run(name, func(t *testing.T) {
			c.channel.Adapter = c.adapter
			got := conditionOf(c.channel, now)
			if got.Tone != c.want || !strings.Contains(got.Why, c.why) {
				t.Errorf("got %+v, want %s because %q", got, c.want, c.why)
			}
		})
	}
}

// TestChecksum: what was not compared is not called verified.
func TestChecksum(t *testing.T) {
	for name, c := range map[string]struct {
		view pluginView
		want string
	}{
		"notPinned": {pluginView{Plugin: api.Plugin{State: "running"}}, "not pinned"},
		"pinned":    {pluginView{Plugin: api.Plugin{State: "running", Pinned: true, SHA256: "9f"}}, "pinned"},
		"verified":  {pluginView{Plugin: api.Plugin{Pinned: true}, Verified: &api.Verified{OK: true}}, "verified"},
		"mismatch":  {pluginView{Plugin: api.Plugin{Pinned: true}, Verified: &api.Verified{}}, "mismatch"},
		"gone":      {pluginView{Verified: &api.Verified{Reason: "no such file"}}, "may not run"},
	} {
		if got := checksum(c.view); got.Word != c.want {
			t.Errorf("%s: got %+v, want %s", name, got, c.want)
		}
	}
}

// TestAgentField: what the API shows of a field is typed as it is, and sent back
// the same.
func TestAgentField(t *testing.T) {
	for kind, values := range map[string][]string{
		"url": {`"https://a.example.org/"`}, "duration": {`"30s"`}, "number": {`5`}, "json": {`{"a":[1]}`},
		"networks": {`true`, `["10.1.0.0/16","127.0.0.1/32"]`},
	} {
		for _, want := range values {
			f := api.AgentField{Name: "x", Type: kind}
			v, err := fieldValue(f, fieldText(f, json.RawMessage(want)))
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(v); string(got) != want {
				t.Errorf("%s: got %s, want %s", kind, got, want)
			}
		}
	}
	for kind, text := range map[string]string{"number": "many", "headers": "no colon", "json": "{"} {
		if v, err := fieldValue(api.AgentField{Type: kind}, text); err == nil {
			t.Errorf("%s: %q gives %v, expected a refusal", kind, text, v)
		}
	}
}

// FuzzAgentField: whatever is typed is refused, or is JSON that can be sent.
func FuzzAgentField(f *testing.F) {
	for _, kind := range []string{"url", "secret", "secrets", "headers", "duration", "number", "networks", "json"} {
		f.Add(kind, "a: b\nc")
		f.Add(kind, "12")
		f.Add(kind, "{}")
	}
	f.Fuzz(func(t *testing.T, kind, text string) {
		field := api.AgentField{Name: "x", Type: kind}
		v, err := fieldValue(field, text)
		if err != nil {
			return
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s %q: %v", kind, text, err)
		}
		fieldText(field, b)
	})
}
