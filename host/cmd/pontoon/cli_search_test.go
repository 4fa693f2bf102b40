package main

import (
	"strings"
	"testing"
)

// The command hands on what is asked for, and prints what was found for people.
func TestCLISearch(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p, other := h.attach(h.channel("c", "")), h.attach(h.channel("d", ""))
	p.ask("one", "the Crème <b>brûlée</b> is here", "echo: the Crème <b>brûlée</b> is here")
	other.ask("two", "creme elsewhere", "echo: creme elsewhere")
	var got struct {
		Results []struct {
			Channel string
			Message row
		}
		Next string `json:"next_cursor"`
	}
	h.json(&got, "search", "creme", "from:alice")
	if len(got.Results) != 2 || got.Results[0].Channel != "d" || got.Results[1].Message.Text != "the Crème <b>brûlée</b> is here" {
		t.Errorf("two words: %+v", got)
	}
	h.json(&got, "search", "creme", "--channel", "c", "--limit", "1")
	if len(got.Results) != 1 || got.Results[0].Message.Direction != "out" || got.Next == "" {
		t.Errorf("a page of one channel: %+v", got)
	}
	if text := h.cli("search", "brulee from:alice"); !strings.Contains(text, "alice: the Crème <b>brûlée</b> is here  (handled)") {
		t.Errorf("for people: %s", text)
	}
}
