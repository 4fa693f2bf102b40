package main

import (
	"encoding/json"
	"testing"
)

// A form that was opened before somebody else's change says what changed and by whom,
// keeps what was typed, and takes over the rest; it is saved the next time.
func TestConsoleStaleForm(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.must(nil, "POST", "/channels", `{"name":"c"}`)
	h.must(nil, "POST", "/agents", `{"name":"hook","kind":"webhook","config":{"url":"https://one.example.org/"}}`)
	for name, scripts := range map[string]bool{"scripts": true, "noScripts": false} {
		t.Run(name, func(t *testing.T) {
			h.must(nil, "PATCH", "/channels/c", `{"agent":"echo","rate_limit":0,"allow_users":[],"queue_limits":{"length":0}}`)
			p := h.console("channels/c/edit")
			p.Scripts(scripts)
			p.Go(h.url + "/console/channels/c/edit")
			p.Type("allow_users", "ann\nbob")
			p.Type("rate_limit", "70")
			h.must(nil, "PATCH", "/channels/c", `{"agent":"none","rate_limit":9}`)
			p.Press("Save")
			p.Shows("it was changed while this form was open")
			p.Is("it says what changed, and by whom", "/agent\\s*echo\\s*→\\s*none\\s*by admin/.test(document.getElementById('meanwhile').innerText)")
			p.Is("what was typed is kept", "document.getElementById('allow_users').value === 'ann\\nbob' && document.getElementById('rate_limit').value === '70'")
			p.Is("what was not is as it is now", "document.getElementById('agent').value === 'none'")
			p.Is("both changed it, says the field", "document.getElementById('rate_limit').matches('[aria-invalid=true]') && !document.getElementById('agent').matches('[aria-invalid=true]')")
			if scripts { // what looks is a script
				p.Accessible("channel-stale")
			}
			var ch struct {
				Agent string
				Rate  int      `json:"rate_limit"`
				Users []string `json:"allow_users"`
			}
			if h.must(&ch, "GET", "/channels/c", ""); ch.Agent != "none" || ch.Rate != 9 || len(ch.Users) != 0 {
				t.Errorf("the stale form changed the channel: %+v", ch)
			}
			p.Press("Save")
			p.Shows("Saved.")
			if h.must(&ch, "GET", "/channels/c", ""); ch.Agent != "none" || ch.Rate != 70 || len(ch.Users) != 2 {
				t.Errorf("saved %+v", ch)
			}

			h.must(nil, "PATCH", "/agents/hook", `{"enabled":true,"config":{"url":"https://one.example.org/"}}`)
			p.Go(h.url + "/console/agents/hook/edit")
			p.Type("config.url", "https://two.example.org/")
			h.must(nil, "PATCH", "/agents/hook", `{"enabled":false}`)
			p.Press("Save")
			p.Shows("it was changed while this form was open")
			p.Is("what was typed is kept", "document.getElementById('config.url').value === 'https://two.example.org/'")
			p.Is("what was not is as it is now", "!document.querySelector('[name=enabled]').checked")
			p.Press("Save")
			p.Shows("Saved.")
			var a struct {
				Enabled bool
				Config  json.RawMessage
			}
			var config struct{ URL string }
			h.must(&a, "GET", "/agents/hook", "")
			if err := json.Unmarshal(a.Config, &config); err != nil || a.Enabled || config.URL != "https://two.example.org/" {
				t.Errorf("saved %+v, %s: %v", a, a.Config, err)
			}
			p.Quiet()
		})
	}
}
