package hub

import "errors"

// Quote marks an error whose text quotes what an agent said. It is shown to who looks
// at the message (why), and kept out of the log.
func Quote(err error) error { return &quoted{err} }

type quoted struct{ error }

func (q *quoted) Unwrap() error { return q.error }

var errQuoted = errors.New("what the agent said is not logged: pontoon why MESSAGE tells it")

// forLog is the error without what an agent said.
func forLog(err error) error {
	var q *quoted
	if errors.As(err, &q) {
		return errQuoted
	}
	return err
}
