//go:build unix

package supervisor

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// A process that is told to die while it is being started is waited for, and
// leaves no pipe open.
func TestKillDuringStart(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var started *child.Child
	p := newProcess(newLogs(0, func(plugin.Line) {}), t.TempDir(), nil, func(env []string) (c *child.Child, err error) {
		close(begun)
		<-goOn
		started, err = child.Start(child.Spec{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Dir: "/", Env: env, NoShim: true})
		return started, err
	})
	failed := make(chan error, 1)
	go func() { failed <- p.Start(t.Context()) }()
	await.Value(t, "the start begins", begun)
	_ = p.Kill(t.Context())
	gone := make(chan struct{})
	go func() { p.gone(); close(gone) }()
	select {
	case <-gone:
		t.Fatal("gone while it was being started")
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	await.Value(t, "it is gone", gone)
	if err := await.Value(t, "Start returns", failed); err != nil {
		t.Fatal(err)
	}
	if !ended(started) {
		t.Error("the process runs")
	}
	for _, f := range []*os.File{started.Stdout, started.Stderr} {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a pipe was left open: %v", err)
		}
	}
	if err := p.Start(t.Context()); !errors.Is(err, errKilled) {
		t.Errorf("started after it was killed: %v", err)
	}
}
