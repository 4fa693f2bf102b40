package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// An adapter with a wrong password of its platform is attached, and yet shows as what it
// is wherever an operator looks; so does one with the right password.
func TestWrongPlatformPassword(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	srv := irctest.Start(t, irctest.Options{Password: "sesame"})
	for name, password := range map[string]string{"wrong": "sesamo", "right": "sesame"} {
		config := fmt.Sprintf(`{"server":%q,"tls":false,"nick":%q,"password":%q}`, srv.Addr, name, password)
		startProcess(t, append(h.env(), "PONTOON_TOKEN="+h.channel(name, "")), pontoonBinary, "adapter", "run", "irc", "--url", h.url, "--config", config)
	}
	type status struct{ State, Reason string }
	platform := func(channel string) (s status) {
		var ch struct {
			Health struct{ Platform *status }
		}
		h.json(&ch, "channel", "show", channel)
		if ch.Health.Platform != nil {
			s = *ch.Health.Platform
		}
		return s
	}
	for name, want := range map[string]string{"wrong": "refused", "right": "connected"} {
		await.UntilElse(t, func() bool { return platform(name).State == want }, func() string { return fmt.Sprintf("%s: %+v", name, platform(name)) })
	}
	if s := platform("wrong"); s.Reason == "" || strings.Contains(s.Reason, "sesamo") {
		t.Errorf("the reason is %q", s.Reason)
	}
	holds(t, h.cli("channel", "show", "wrong"), "refused since ")
	_, page := fetch(t, h.url+"/metrics", h.key)
	holds(t, page, `pontoon_platform_state{channel="wrong",state="refused"} 1`, `pontoon_platform_state{channel="wrong",state="connected"} 0`,
		`pontoon_platform_state{channel="right",state="connected"} 1`)

	var list struct {
		Checks []struct{ Result, What, Detail string }
	}
	r := runCommand(t, h.env(), "", "doctor", "--json")
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != 1 {
		t.Fatalf("doctor: %v, exit status %d", err, r.code)
	}
	results := map[string]string{}
	for _, c := range list.Checks {
		results[c.What] = c.Result
	}
	if results["platform of wrong"] != "fail" || results["platform of right"] != "ok" {
		t.Errorf("the doctor says %+v", list.Checks)
	}
}
