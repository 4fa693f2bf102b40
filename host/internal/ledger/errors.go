package ledger

import (
	"errors"
	"fmt"
)

// ErrNotFound is the error of what does not exist.
var ErrNotFound = errors.New("not found")

// Errors of a commit.
var (
	ErrDuplicate   = errors.New("message is already stored")
	ErrRemoved     = errors.New("channel or message was deleted")
	ErrFenced      = errors.New("channel has another owner now")
	ErrUnavailable = errors.New("storage is unavailable")
)

// ErrFull refuses messages before the disk is full.
var ErrFull = fmt.Errorf("%w: the disk is nearly full", ErrUnavailable)

// Errors after which a process must not write any more.
var (
	// ErrNotSynced: the disk did not confirm what was written. What it holds of
	// that nobody knows: the system may count pages as clean that it has lost.
	ErrNotSynced = errors.New("the disk did not confirm what was written")
	// ErrLost: the database is not where it was.
	ErrLost = errors.New("the database is lost")
	// ErrLogLost: the files that the engine keeps beside the database are not where
	// they were. The database has all that was stored.
	ErrLogLost = errors.New("the write-ahead log is lost")
	// ErrCorrupt: the database is damaged.
	ErrCorrupt = errors.New("the database is damaged")
)

// Failing reports whether err is the storage's: what was asked for may succeed later.
func Failing(err error) bool { return errors.Is(err, ErrUnavailable) }
