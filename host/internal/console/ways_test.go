package console

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestWaysOutOfAChannel: its page leads to what belongs to it, and none of these ways ends
// nowhere.
func TestWaysOutOfAChannel(t *testing.T) {
	v := visit(t)
	v.Make("red", `,"agent":"echo"`)
	for _, to := range []string{"conversations?channel=red", "channels/red/frames", "agents/echo", "audit?target=red", "channels/red/edit"} {
		v.open("channels/red")
		if v.find(func(n *html.Node) bool { return n.Data == "a" && attr(n, "href") == Path+to }) == nil {
			t.Errorf("no link to %s", to)
		}
		if v.open(to); v.status != http.StatusOK {
			t.Errorf("%s: status %d", to, v.status)
		}
	}
}

// TestLoadedAgain: an address that only forms are sent to, which a browser shows after a
// refusal, leads to the page above when it is loaded again.
func TestLoadedAgain(t *testing.T) {
	v := visit(t)
	v.Make("red", "")
	for from, to := range map[string]string{
		"channels/red/test": "channels/red", "channels/red/rotate": "channels/red", "channels/red/delete": "channels/red", "channels/red/enable": "channels/red",
		"plugins/reload": "plugins", "agents/echo/rotate": "agents/echo",
	} {
		v.open(from)
		if v.status != http.StatusOK || v.path != Path+to {
			t.Errorf("%s: status %d, at %s", from, v.status, v.path)
		}
	}
	for _, from := range []string{"no-such-page", "channels/red/no-such-page", "plugins/nobody"} {
		if v.open(from); v.status != http.StatusNotFound || v.path != Path+from {
			t.Errorf("%s: status %d, at %s", from, v.status, v.path)
		}
	}
}

// TestRemovedPlugin: of a plugin that plugins.yaml does not name any more the channel is
// there, and what leads to the plugin leads to it.
func TestRemovedPlugin(t *testing.T) {
	v := visit(t)
	v.Channel("webchat")
	if _, err := beside(t, v.Dir).ExecContext(t.Context(), "UPDATE channel SET kind = 'plugin' WHERE name = 'webchat'"); err != nil {
		t.Fatal(err)
	}
	v.open("plugins/webchat")
	if text := v.words(); v.status != http.StatusOK || v.path != Path+"channels/webchat" || !strings.Contains(text, "plugins.yaml does not name webchat any more") ||
		!strings.Contains(text, "No process runs for it") {
		t.Errorf("status %d, at %s: %s", v.status, v.path, text)
	}
}
