package webchat

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/port"
)

// shipped is the address of the page in the plugins.yaml that comes with the
// project.
const shipped = `listen: "127.0.0.1:8081"`

// What a newcomer sees: the host is started, its log names the address, the page
// answers. The plugin may be killed meanwhile.
func TestAsPlugin(t *testing.T) {
	entries, err := os.ReadFile("../../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(entries), shipped) != 1 {
		t.Fatalf("plugins.yaml does not have %s once:\n%s", shipped, entries)
	}
	address := port.Free(t)
	dir := t.TempDir()
	entries = []byte(strings.Replace(string(entries), shipped, `listen: "`+address+`"`, 1))
	if err := os.WriteFile(filepath.Join(dir, "plugins.yaml"), entries, 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHostIn(t, dir)
	eventually(t, "the host's log names the page", func() bool {
		found := opensAt.FindStringSubmatch(h.errs.String())
		return found != nil && found[1] == "http://"+address
	})
	p := openTab(t, "http://"+address+"/", nil)
	p.online()
	p.says("hello, plugin")
	p.shows("echo: hello, plugin")

	var before, after struct {
		Pid      int
		State    string
		Restarts int
	}
	h.must(&before, "GET", "/plugins/webchat", nil)
	if err := syscall.Kill(before.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is started again", func() bool {
		h.must(&after, "GET", "/plugins/webchat", nil)
		return after.State == "running" && after.Restarts == 1
	})
	p.online()
	p.says("still there")
	p.shows("echo: still there")
	p.shot("as-plugin")
}
