package console

import (
	"net/http"
	"strings"
	"testing"
)

// The form of a channel that was deleted meanwhile says so, and keeps what was typed.
func TestChannelIsGone(t *testing.T) {
	v := visit(t)
	v.Make("red", "")
	v.open("channels/red/edit")
	v.Must(nil, "DELETE", "/channels/red", "")
	for range 2 { // also when it is sent again
		v.send("/edit", map[string]string{"allow_users": "u-17", "rate_limit": "23"})
		if v.status != http.StatusNotFound || !strings.Contains(v.text(), "The channel was deleted while this form was open") {
			t.Fatalf("%d %s", v.status, v.text())
		}
		for _, typed := range []string{"u-17", `value="23"`, `value="red"`} {
			if !strings.Contains(v.source(), typed) {
				t.Errorf("%s is not there any more", typed)
			}
		}
	}
}

// So does the form of an agent.
func TestAgentIsGone(t *testing.T) {
	v := visit(t)
	v.Must(nil, "POST", "/agents", `{"name":"clerk","kind":"webhook","config":{"url":"http://127.0.0.1:9/answers","allow_private":true}}`)
	v.open("agents/clerk/edit")
	v.Must(nil, "DELETE", "/agents/clerk", "")
	for range 2 {
		v.send("/edit", map[string]string{"config.timeout": "2m7s"})
		if v.status != http.StatusNotFound || !strings.Contains(v.text(), "The agent was deleted while this form was open") {
			t.Fatalf("%d %s", v.status, v.text())
		}
		for _, typed := range []string{"2m7s", `value="http://127.0.0.1:9/answers"`, `value="clerk"`} {
			if !strings.Contains(v.source(), typed) {
				t.Errorf("%s is not there any more", typed)
			}
		}
	}
}
