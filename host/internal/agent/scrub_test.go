package agent

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
)

// What is sent in secret is taken out of what an agent says, however it is written and
// wherever what is read of it ends; what kind of error it is stays known.
func TestScrubber(t *testing.T) {
	r := &remote{secrets: newScrubber(map[string]string{"Authorization": `Bearer a/b"secret`, "X-Tenant": "one"})}
	for said, want := range map[string]string{
		`map[Authorization:[Bearer a/b"secret]] tenant one`: "map[Authorization:[***]] tenant one",
		`{"key":"a/b\"secret"}`:                             `{"key":"***"}`,
		"?key=a%2Fb%22secret":                               "?key=***",
		"nothing of it":                                     "nothing of it",
	} {
		if got := r.wordsOf(io.NopCloser(strings.NewReader(said))); got != want {
			t.Errorf("%s: found %s", said, got)
		}
		err := r.secrets.of(errors.Join(hub.ErrAway, errors.New(said)))
		if !errors.Is(err, hub.ErrAway) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: found %v", said, err)
		}
	}
	for n := range 40 { // the end of what is read is somewhere in it
		said := strings.Repeat("x", maxWords+maxHeaderBytes-n) + `a/b"secret` + strings.Repeat("y", 5000)
		many := strings.Repeat(`a/b"secret `, (maxWords+maxHeaderBytes)/11+n)
		for _, text := range []string{said, strings.Repeat(" ", n) + many} {
			got := r.wordsOf(io.NopCloser(strings.NewReader(text)))
			if strings.Contains(got, "a/b") || strings.Contains(got, "secret") || len(got) > maxWords {
				t.Fatalf("found %d bytes: %s", len(got), got)
			}
		}
	}
	none := new(remote)
	if got := none.wordsOf(io.NopCloser(strings.NewReader("said"))); got != "said" {
		t.Errorf("found %q", got)
	}
}
