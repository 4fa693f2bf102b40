package sqlite

import (
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// The list of dead letters goes through its own index, from where the page begins: with a
// million messages, and tens of thousands of letters, nothing else would do.
func TestDeadPlan(t *testing.T) {
	s := opened(t)
	rows, err := s.readDB.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+deadLetters, 1, 1, "", 0, "", 30)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(step + "\n")
	}
	if p := plan.String(); rows.Err() != nil || !strings.Contains(p, "SEARCH m USING INDEX message_died") || strings.Contains(p, "TEMP B-TREE") {
		t.Errorf("planned, %v:\n%s", rows.Err(), p)
	}
}

// Of a letter that was stored as one the id tells when it died; the cursor of any place
// leads back to it.
func TestDeathOfTheStillborn(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	row := ledger.Row{Direction: ledger.Out, State: ledger.Failed, Reason: ledger.ReasonNotAttached, Text: "no"}
	u := &ledger.Unit{Conversation: recalled(t, s, chain, "r"), Out: []ledger.Row{row}}
	if err := commit(s, u); err != nil {
		t.Fatal(err)
	}
	list, err := s.Dead(t.Context(), 0, "", ledger.Death{}, 10)
	if err != nil || len(list) != 1 || !list[0].Died.Equal(list[0].ID.Time()) {
		t.Fatalf("dead: %+v, %v", list, err)
	}
	place, ok := ledger.ParseDeath(list[0].Death().Cursor())
	if !ok || place != list[0].Death() {
		t.Errorf("the cursor leads to %+v, %v, not to %+v", place, ok, list[0].Death())
	}
	if list, err = s.Dead(t.Context(), 0, "", place, 10); err != nil || len(list) != 0 {
		t.Errorf("behind the last: %+v, %v", list, err)
	}
	for _, wrong := range []string{"MTIz", "!", "MS4"} {
		if _, ok := ledger.ParseDeath(wrong); ok {
			t.Errorf("%s is a place", wrong)
		}
	}
}
