package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

const (
	// defaultLeft is how long a temporary file must have lain still: longer than
	// any upload takes.
	defaultLeft = time.Hour
	sweepMax    = 10_000 // entries of a directory that one sweep looks at
	sweepBatch  = 256
)

// sweepEvery is how often Serve sweeps.
const sweepEvery = 10 * time.Minute

// Serve sweeps and reclaims now and then until ctx ends.
func (s *Store) Serve(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	var reclaimed time.Time
	for {
		if time.Since(reclaimed) >= reclaimEvery {
			reclaimed = time.Now()
			if n, err := s.Reclaim(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("attachments not looked through", "error", err)
			} else if n > 0 {
				s.log.Info("attachments removed", "why", "no message names them", "count", n)
			}
		}
		if n, err := s.Sweep(ctx, 0); err != nil && ctx.Err() == nil {
			s.log.Warn("attachments not swept", "error", err)
		} else if n > 0 {
			s.log.Info("left-over uploads removed", "count", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep removes what broken uploads and a crash left: temporary files that
// nobody wrote to for olderThan (0 = an hour) and reservations that are over.
// Attachments stay: they are for Reclaim. It returns how many files it removed, and the first error
// of each directory; it looks at a bounded number of files, so that what is
// left over is a later sweep's.
func (s *Store) Sweep(ctx context.Context, olderThan time.Duration) (removed int, err error) {
	if olderThan <= 0 {
		olderThan = defaultLeft
	}
	temps, err1 := s.sweepDir(ctx, tempDir, func(name string) (bool, error) { return s.sweepTemp(name, olderThan) })
	over, err2 := s.sweepDir(ctx, reservedDir, s.sweepReserved)
	if err := errors.Join(err1, err2); err != nil {
		return temps + over, fmt.Errorf("sweep attachments: %w", err)
	}
	return temps + over, nil
}

// sweepDir gives the names in a directory to one, which says whether it removed
// the file.
func (s *Store) sweepDir(ctx context.Context, name string, one func(string) (bool, error)) (removed int, first error) {
	d, err := s.dir.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = d.Close() }()
	for seen := 0; seen < sweepMax; {
		entries, err := d.ReadDir(sweepBatch)
		if errors.Is(err, io.EOF) {
			return removed, first
		}
		if err != nil {
			return removed, errors.Join(first, err)
		}
		seen += len(entries)
		for _, e := range entries {
			if ctx.Err() != nil {
				return removed, ctx.Err()
			}
			gone, err := one(e.Name())
			if gone {
				removed++
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) && first == nil {
				first = err
			}
		}
	}
	return removed, first
}

func (s *Store) sweepTemp(name string, olderThan time.Duration) (bool, error) {
	p, side, ours := placeOfTemp(name)
	if ours {
		if !s.claim(p) {
			return false, nil
		}
		defer s.release(p)
	}
	info, err := s.dir.Lstat(tempDir + "/" + name)
	if err != nil || s.now().Sub(info.ModTime()) < olderThan {
		return false, err
	}
	if ours && !side {
		// It was not published, or is half deleted: what is beside it goes too.
		if _, err := s.dir.Lstat(p.bytes()); errors.Is(err, fs.ErrNotExist) {
			if err := remove(s.dir, p.side()); err != nil {
				return false, err
			}
		}
	}
	err = s.dir.RemoveAll(tempDir + "/" + name)
	return err == nil, err
}

func (s *Store) sweepReserved(name string) (bool, error) {
	full := reservedDir + "/" + name
	b, err := readSmall(s.dir, full)
	if err != nil {
		return false, err
	}
	var m promised
	if json.Unmarshal(b, &m) == nil && s.now().Before(m.ExpiresAt) {
		return false, nil
	}
	// An upload that began in time may still come to its end.
	if p, err := (Ref{Bucket, m.Path}).place(); err == nil {
		if !s.claim(p) {
			return false, nil
		}
		defer s.release(p)
	}
	err = s.dir.RemoveAll(full)
	return err == nil, err
}
