package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// TestWordsOfStates: every state and reason that a message can be in is explained, and
// nothing is that can't be.
func TestWordsOfStates(t *testing.T) {
	known := 0
	for s := ledger.Received; s <= ledger.Expired; s++ {
		known++
		complete(t, s.String(), states[s.String()], s != ledger.Handled && s != ledger.Delivered)
	}
	if known != len(states) {
		t.Errorf("%d states are explained, %d exist", len(states), known)
	}
	found := reasonsOf(t, "../ledger/row.go")
	for _, r := range found {
		complete(t, r, reasons[r], true)
	}
	if len(found) != len(reasons) || len(found) < 8 {
		t.Errorf("%d reasons are explained, %d exist", len(reasons), len(found))
	}
}

func complete(t *testing.T, name string, s saying, next bool) {
	t.Helper()
	if s.Word == "" || s.Mean == "" || s.Tone == "" || next && s.Next == "" {
		t.Errorf("%s is not explained: %+v", name, s)
	}
}

// reasonsOf reads the constants of type Reason in a file.
func reasonsOf(t *testing.T, path string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "Reason") {
			return true
		}
		if lit, ok := v.Values[0].(*ast.BasicLit); ok {
			word, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, word)
		}
		return true
	})
	return found
}

func TestWordsOf(t *testing.T) {
	for _, tc := range []struct{ name, state, reason, want string }{
		{"state alone", "queued", "", "Queued"},
		{"with its reason", "failed", "queue_full", "Failed: queue full"},
		{"a newer host's", "shelved", "", "shelved"},
		{"a newer host's reason", "failed", "too_loud", "Failed: too_loud"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := wordsOf(tc.state, tc.reason); got.Word != tc.want || got.Mean == "" {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

// TestSentTo: nobody is told that an adapter can't say more which can, nor the other
// way round.
func TestSentTo(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		adapter    *api.Adapter
	}{
		{"acknowledges", "has not yet", &api.Adapter{Effective: []string{"ack", "text"}}},
		{"does not", "nobody can say", &api.Adapter{Effective: []string{"text"}}},
		{"is gone", "An adapter with the capability ack", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sentTo(tc.adapter); !strings.Contains(got, tc.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}
