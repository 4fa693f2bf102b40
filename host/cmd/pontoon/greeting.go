package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/console"
)

// greeting is what serve says once it listens: where the host is, and how to get in.
type greeting struct {
	dir, url  string
	masterKey string // file in which one was made at this start; "" = none was
	metrics   string // url without a key; "" = none
	link      string // by which the operator is set up; "" = there is one
}

func (g *greeting) madeKey(file string) { g.masterKey = file }

// print says it all in one write, for programs that read along.
func (g *greeting) print(out io.Writer) {
	text := fmt.Sprintf("Pontoon %s listens on %s\nThe admin key is in %s\n", version, g.url, filepath.Join(g.dir, auth.KeyFile))
	if g.masterKey != "" {
		text += fmt.Sprintf("A master key was made, which secrets are sealed with: keep a copy of %s, apart from backups\n", g.masterKey)
	}
	if g.metrics != "" {
		text += fmt.Sprintf("Metrics are at %s\n", g.metrics)
	}
	if g.link == "" {
		text += fmt.Sprintf("The console is at %s%s: log in there\n", g.url, console.Path)
	} else {
		text += fmt.Sprintf("Nobody operates this host yet. Choose a name and a password, once, at\n  %s\n", g.link)
	}
	_, _ = io.WriteString(out, text)
}
