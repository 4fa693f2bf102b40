package transport

import "testing"

// What was heard is compared with now by the steady clock, or a clock that is
// set would end every connection.
func TestHeardIsSteady(t *testing.T) {
	var m moment
	m.note()
	if at := m.time(); at == at.Round(0) { //nolint:staticcheck // Round takes the steady clock's reading away, which == sees
		t.Error("the time has no reading of the steady clock")
	}
}
