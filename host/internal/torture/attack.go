package torture

import (
	"fmt"
	"os"
	"testing"
)

// attacks names a file: attacks are tried more often, and rows of their table
// are added to it.
const attacks = "PONTOON_SECURITY"

// Siege reports whether attacks are to be tried more often.
func Siege() bool { return os.Getenv(attacks) != "" }

// Tries is how often to try an attack.
func Tries(short, long int) int {
	if Siege() {
		return long
	}
	return short
}

// Attack is what was tried, and how often it got through. It logs the row, adds
// it to the table, and fails the test if anything did, or if nothing was tried.
func Attack(t testing.TB, attack string, tries, through int, how string) {
	t.Helper()
	line := fmt.Sprintf("| %s | %d | %d | %s |\n", attack, tries, through, how)
	t.Log(line)
	if through > 0 || tries == 0 {
		t.Errorf("%s: %d of %d got through", attack, through, tries)
	}
	if Siege() {
		add(t, os.Getenv(attacks), line)
	}
}

func add(t testing.TB, file, line string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(line)
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
}
