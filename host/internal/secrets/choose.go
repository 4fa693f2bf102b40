package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// nextSuffix is behind the name of the file that a new key waits in while
// everything is sealed again.
const nextSuffix = ".new"

// Next is the file that a new key waits in.
func (s Source) Next() string { return s.File + nextSuffix }

// Former is the file that a key is kept in which another took the place of: what
// was backed up before needs it.
func (s Source) Former(k *Key) string { return s.File + "." + k.ID() }

// Choose finds the key that opens a database, which nobody else may use now. try
// counts what is sealed there, and fails if the key, unless it is nil, does not
// open it. A key is made only where nothing is sealed; a change of keys that was
// cut off is brought to its end. An error says what is to be done.
func (s Source) Choose(try func(*Key) (sealed int, err error)) (k *Key, made bool, err error) {
	k, err = s.Read()
	missing := s.Env == "" && errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, false, err
	}
	if k != nil {
		_, err := try(k)
		if err == nil {
			return k, false, s.dropNext()
		}
		if !errors.Is(err, ErrKey) {
			return nil, false, err
		}
		if next, ok := s.opensNext(try); ok {
			return next, false, s.Advance(k, next)
		}
		return nil, false, fmt.Errorf("the master key in %s does not open the secrets in the database (%w): %s", s, err, s.advice())
	}
	if next, ok := s.opensNext(try); ok {
		return next, false, s.Advance(nil, next)
	}
	sealed, err := try(nil)
	if err != nil {
		return nil, false, err
	}
	if sealed > 0 {
		return nil, false, fmt.Errorf("the master key is not there: found no %s, and the database holds %d secrets sealed with one: %s", s.File, sealed, s.advice())
	}
	if k, err = Generate(); err != nil {
		return nil, false, err
	}
	return k, true, k.Write(s.File)
}

// advice is what an operator can do whose key is not the one.
func (s Source) advice() string {
	where := "put the right key there, or into " + EnvKey
	if s.Env != "" {
		where = "set it to the right key, or unset it if the key is in " + s.File
	}
	return where + "; if it is lost: pontoon secret forget"
}

// opensNext finds the key that was about to take the place of another.
func (s Source) opensNext(try func(*Key) (int, error)) (*Key, bool) {
	if s.Env != "" {
		return nil, false
	}
	next, err := ReadFile(s.Next())
	if err != nil {
		return nil, false
	}
	sealed, err := try(next)
	return next, err == nil && sealed > 0
}

// dropNext removes a new key that nothing was sealed with.
func (s Source) dropNext() error {
	if s.Env != "" {
		return nil
	}
	if err := os.Remove(s.Next()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a master key that was not used: %w", err)
	}
	return nil
}

// Advance makes the key that waits the key; the former one stays, under its id.
// It may be called again after it was cut off.
func (s Source) Advance(former, next *Key) error {
	if former != nil {
		if err := os.Rename(s.File, s.Former(former)); err != nil {
			return fmt.Errorf("keep former master key: %w", err)
		}
	}
	if err := os.Rename(s.Next(), s.File); err != nil {
		return fmt.Errorf("put master key %s in its place: %w", next.ID(), err)
	}
	if err := SyncDir(filepath.Dir(s.File)); err != nil {
		return fmt.Errorf("put master key %s in its place: %w", next.ID(), err)
	}
	return nil
}

// Prepare makes a new key that waits to take the place of another.
func (s Source) Prepare() (*Key, error) {
	if err := s.dropNext(); err != nil {
		return nil, err
	}
	k, err := Generate()
	if err != nil {
		return nil, err
	}
	return k, k.Write(s.Next())
}
