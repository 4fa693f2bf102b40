package supervisor

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

// What a plugin writes of the secrets that it was given is kept by nobody.
func TestLogsHideSecrets(t *testing.T) {
	t.Parallel()
	const canary, pem = `canary "of a" plugin/+`, "-----BEGIN-----\ncanary-of-a-line\n"
	var told []string
	l := newLogs(0, func(line plugin.Line) { told = append(told, line.Text) })
	l.hide([]string{canary, pem})
	b := []byte(canary)
	for _, form := range []string{
		canary, fmt.Sprintf("%q", canary), hex.EncodeToString(b), fmt.Sprintf("%X", b), base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b),
		url.QueryEscape(canary), url.PathEscape(canary), "canary-of-a-line",
	} {
		l.add(streamStderr, "panic: before "+form+" behind")
		if said := l.lastWords(); !strings.HasPrefix(said, "panic: before ") || strings.Contains(said, form) {
			t.Errorf("last words: %s", said)
		}
		l.begin()
	}
	l.note("host: " + canary)
	kept, _ := l.read(0, 100)
	if len(kept) != 10 || len(told) != 9 {
		t.Fatalf("%d kept, %d told", len(kept), len(told))
	}
	for i, line := range kept {
		if !strings.Contains(line.Text, "***") || strings.Contains(line.Text, "canary") || i < 9 && told[i] != line.Text {
			t.Errorf("kept %s", line.Text)
		}
	}
	l.hide(nil)
	l.add(streamStdout, "plain")
	if kept, _ := l.read(0, 1); kept[0].Text != "plain" {
		t.Errorf("kept %+v", kept)
	}
}
