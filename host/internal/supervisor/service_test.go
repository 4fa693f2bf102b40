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
