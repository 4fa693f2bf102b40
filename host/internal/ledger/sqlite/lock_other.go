//go:build !unix

package sqlite

// lockDirectory does nothing here: an open file can't be removed.
func lockDirectory(string) (unlock func() error, held bool, err error) {
	return func() error { return nil }, true, nil
}
