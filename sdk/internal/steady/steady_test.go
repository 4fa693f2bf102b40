package steady

import "testing"

// What was heard is compared with now by the steady clock, or a clock that is
// set would end every connection.
func TestTimeIsSteady(t *testing.T) {
	var m Moment
	m.Note()
	if at := m.Time(); at == at.Round(0) { //nolint:staticcheck // Round takes the steady clock's reading away, which == sees
		t.Error("the time has no reading of the steady clock")
	}
}

func TestTakeForgets(t *testing.T) {
	var m Moment
	if _, ok := m.Take(); ok {
		t.Error("Take = true before Note")
	}
	m.Note()
	if d, ok := m.Take(); !ok || d <= 0 {
		t.Errorf("Take = %s, %t", d, ok)
	}
	if _, ok := m.Take(); ok {
		t.Error("Take = true twice")
	}
}
