package api_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The API names no front end and nothing that runs plugins: cmd registers them, so
// that another one is added without a change here. What the API imports may not reach
// them either.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	const internal = "github.com/pontoon-bridge/pontoon/host/internal/"
	found := 0
	for path := range strings.FieldsSeq(string(out)) {
		name, ours := strings.CutPrefix(path, internal)
		if !ours {
			continue
		}
		found++
		for _, barred := range []string{"front/", "socketio", "supervisor", "agent/bridle"} {
			if strings.HasPrefix(name, barred) {
				t.Errorf("the API depends on %s", path)
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d packages of the host, expected those that the API uses", found)
	}
}
