package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command in the table of docs/operators.md exists, with its flags, and each that
// exists is there.
func TestCommandTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| command | does |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	root, documented := newRoot(), map[string]bool{"serve": true} // which has a section of its own
	code, flag := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`--([a-z-]+)`)
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		above := root // of the cell's other commands: `channel list`, `show`
		for _, span := range code.FindAllStringSubmatch(cell, -1) {
			words := commandWords(span[1])
			cmd := found(above, words)
			if cmd == nil {
				cmd = found(root, words)
			}
			if cmd == nil {
				t.Errorf("%s: there is no such command", span[1])
				continue
			}
			for _, f := range flag.FindAllStringSubmatch(span[1], -1) {
				if cmd.Flag(f[1]) == nil {
					t.Errorf("%s: there is no flag --%s", span[1], f[1])
				}
			}
			above = cmd.Parent()
			documented[strings.Fields(cmd.CommandPath())[1]] = true
		}
	}
	for _, cmd := range root.Commands() {
		if name := cmd.Name(); cmd.IsAvailableCommand() && name != "help" && name != "completion" && !documented[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// commandWords are the words before the arguments.
func commandWords(code string) []string {
	words := strings.Fields(code)
	for i, w := range words {
		if w != strings.ToLower(w) || strings.HasPrefix(w, "[") || strings.HasPrefix(w, "-") || w == "…" {
			return words[:i]
		}
	}
	return words
}

// found is the command of these words below another; nil = there is none.
func found(below *cobra.Command, words []string) *cobra.Command {
	cmd, rest, err := below.Find(words)
	if err != nil || len(rest) > 0 || cmd == below {
		return nil
	}
	return cmd
}
