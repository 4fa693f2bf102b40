package supervisor

import (
	"fmt"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
)

// What suture logs of a service is its name, never what its entry holds.
func TestServiceName(t *testing.T) {
	v := newService(nil, config.Plugin{Name: "tickets", Config: []byte(`{"password":"x"}`)}, nil)
	if got, want := fmt.Sprintf("%v %[1]s", v), "plugin tickets plugin tickets"; got != want {
		t.Errorf("fmt prints %q, want %q", got, want)
	}
}

// What a process said last is called the reason of its end only if it tells that: a line of
// its log is not.
func TestEndOf(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, "exited with status 1"},
		{[]string{"listening", "GET /health 200"}, "exited with status 1; it did not say why, and its last line was: GET /health 200"},
		{[]string{"panic: no room", "goroutine 1 [running]:"}, "exited with status 1: panic: no room"},
	} {
		l := newLogs(0, nil)
		for _, line := range c.lines {
			l.words.hear(line)
		}
		if got := endOf("exited with status 1", clip(l.lastWords()), l.tell()); got != c.want {
			t.Errorf("after %q: %q, want %q", c.lines, got, c.want)
		}
	}
}
