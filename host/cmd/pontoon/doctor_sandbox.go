package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
)

// checkSandbox says what a sandbox amounts to here.
func checkSandbox() finding {
	strength, landlock, open := child.Available()
	left := strings.Join(open, ", ")
	switch strength {
	case child.None:
		return finding{checkWarn, "sandbox of plugins", "the kernel has no Landlock, or it is not in use (CONFIG_LSM, lsm=): open are " + left}
	case child.Partial:
		return finding{checkWarn, "sandbox of plugins", fmt.Sprintf("partial, by Landlock %d: open are %s", landlock, left)}
	}
	if left != "" {
		left = ": open are " + left
	}
	return finding{checkOK, "sandbox of plugins", fmt.Sprintf("full, by Landlock %d%s", landlock, left)}
}

// heldBy says what keeps a plugin that runs.
func heldBy(p pluginView) string {
	text := fmt.Sprintf("sandbox %s, as %s, memory limited by %s", p.Sandbox, cmp.Or(p.User, "the host's user"), p.LimitBy)
	if len(p.Open) > 0 {
		text += "; open are " + strings.Join(p.Open, ", ")
	}
	return text
}
