package main

import "time"

// clockTolerance is how far two clocks may be apart and both be right.
const clockTolerance = 2 * time.Minute

// programYear is before this program was made: no clock that is right says so.
var programYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// checkClock looks whether the machine's clock can be believed: messages' times,
// expiry of tokens and retention go by it.
func checkClock(now func() time.Time) finding {
	at := now()
	f := finding{checkOK, "clock", at.UTC().Format(time.RFC3339)}
	kept, known := clockKept()
	switch {
	case at.Before(programYear):
		f.Result, f.Detail = checkFail, f.Detail+" is before this program was made: set it"
	case !known:
		f.Detail += "; whether it is kept right is not known on this system"
	case !kept:
		f.Result, f.Detail = checkWarn, f.Detail+"; nothing keeps it right: run an NTP client such as systemd-timesyncd or chrony"
	default:
		f.Detail += ", kept right by the system"
	}
	return f
}

// checkFileSystem names one on which SQLite's locks or syncs can't be trusted.
func checkFileSystem(dir string) finding {
	kind, fit := fileSystemOf(dir)
	switch {
	case kind == "":
		return finding{checkOK, "file system", "not known on this system"}
	case !fit:
		return finding{checkWarn, "file system", kind + ": locks and syncs of a network or memory file system can't be trusted with the database"}
	}
	return finding{checkOK, "file system", kind}
}
