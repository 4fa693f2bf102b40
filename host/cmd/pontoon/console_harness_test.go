package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
)

// Who operates the hosts of these tests.
const (
	operatorName     = "ada"
	operatorPassword = "four floats and a deck"
)

// setupLink is printed by a host that nobody operates yet.
var setupLink = regexp.MustCompile(`(?m)^\s+(http\S+/console/setup\?code=\S+)$`)

// axe reads the text of axe-core from its package.
func axe(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(nodePackages(t, "axe"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// console opens a page of the console as the operator, whom it sets up first if
// there is none.
func (h *host) console(path string) *browser.Tab {
	h.t.Helper()
	var p *browser.Tab
	if !h.operated {
		p = h.setUp()
	} else {
		p = browser.Open(h.t, h.url+"/console/login")
		p.Type("name", operatorName)
		p.Type("password", operatorPassword)
		p.Press("Log in")
	}
	p.Shows("Overview")
	p.Go(h.url + "/console/" + path)
	return p
}

// setUp follows the link that the host printed.
func (h *host) setUp() *browser.Tab {
	h.t.Helper()
	found := setupLink.FindStringSubmatch(h.out.String())
	if found == nil {
		h.t.Fatalf("the host printed no link:\n%s", h.out.String())
	}
	p := browser.Open(h.t, found[1])
	p.Type("name", operatorName)
	p.Type("password", operatorPassword)
	p.Type("again", operatorPassword)
	p.Press("Begin")
	p.Shows("Overview")
	h.operated = true
	return p
}
