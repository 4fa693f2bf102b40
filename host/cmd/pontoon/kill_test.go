package main

import (
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/bench"
)

// What was answered before a SIGKILL is there after it: the short form of
// `pontoon bench kill`.
func TestServeSurvivesKill(t *testing.T) {
	t.Parallel()
	report, err := bench.Kill(t.Context(), bench.KillConfig{
		Exe: pontoonBinary, Dir: t.TempDir(), Rounds: 5, Conns: 4, Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if !report.OK() || report.Kills < 5 {
		t.Error("something that was answered is lost or changed")
	}
}
