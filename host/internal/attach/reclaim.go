package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

const (
	// unnamedAge is how long an upload may wait for the message that names it.
	unnamedAge = time.Hour
	// lendFor is how long an attachment stays that somebody is about to name:
	// longer than any commit takes.
	lendFor      = 10 * time.Minute
	reclaimEvery = 20 * time.Minute
)

// Bytes is what all attachments take, as far as the last Reclaim counted and by
// what came and went since.
func (s *Store) Bytes() int64 { return s.used.Load() }

// Remove removes attachments by their IDs, which no message names any more. One
// that somebody is about to name stays, and is looked at again by Reclaim; so is
// what can't be removed now.
func (s *Store) Remove(ids []string) {
	for _, id := range ids {
		bucket, path, _ := strings.Cut(id, "/")
		p, err := (Ref{bucket, path}).place()
		if err == nil {
			_, err = s.discard(p)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			s.log.Warn("attachment not removed", "attachment", id, "error", err)
		}
	}
}

// Reclaim counts what all attachments take, and removes those that no message
// names: what was uploaded an hour ago and never sent, and what a crash left between
// the end of a message and that of its attachments. It returns how many it removed.
func (s *Store) Reclaim(ctx context.Context) (removed int, err error) {
	changed := s.changed.Load()
	var used int64
	top := Bucket + "/" + folder
	err = s.eachName(ctx, top, func(owners []string) error {
		for _, owner := range owners {
			if checkOwner(owner) != nil {
				continue
			}
			n, size, err := s.reclaimOwner(ctx, owner)
			removed, used = removed+n, used+size
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return removed, fmt.Errorf("look for attachments without a message: %w", err)
	}
	s.used.Store(used + s.changed.Load() - changed) // with what came and went meanwhile
	return removed, nil
}

func (s *Store) reclaimOwner(ctx context.Context, owner string) (removed int, used int64, err error) {
	dir := place{owner: owner}.dir()
	if info, err := s.dir.Lstat(dir); err != nil || !info.IsDir() {
		return 0, 0, ignoreMissing(err)
	}
	left := 0
	err = s.eachName(ctx, dir, func(names []string) error {
		left += len(names)
		var old []string
		for _, name := range names {
			info, err := s.dir.Lstat(dir + "/" + name)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			used += info.Size()
			file, side := strings.CutSuffix(name, ".json")
			p := place{owner, file}
			switch {
			case !isFile(file) || s.now().Sub(info.ModTime()) < unnamedAge:
			case !side:
				old = append(old, p.ref().String())
			default:
				if err := s.dropLoneSide(p); err != nil {
					return err
				}
			}
		}
		n, err := s.removeUnnamed(ctx, old)
		removed += n
		return err
	})
	if err == nil && left == 0 {
		err = s.dropEmpty(dir)
	}
	return removed, used, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeUnnamed removes those that no message names.
func (s *Store) removeUnnamed(ctx context.Context, ids []string) (removed int, err error) {
	if s.named == nil || len(ids) == 0 {
		return 0, nil
	}
	named, err := s.named(ctx, ids)
	if err != nil {
		return 0, err
	}
	keep := map[string]bool{}
	for _, id := range named {
		keep[id] = true
	}
	for _, id := range ids {
		if keep[id] {
			continue
		}
		_, path, _ := strings.Cut(id, "/")
		p, err := (Ref{Bucket, path}).place()
		if err != nil {
			return removed, err
		}
		gone, err := s.discard(p)
		if gone {
			removed++
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return removed, err
		}
	}
	return removed, nil
}

// discard removes an attachment unless somebody is about to name it.
func (s *Store) discard(p place) (bool, error) {
	s.mu.Lock()
	_, busy := s.busy[p]
	at, lent := s.lent[p]
	if busy || lent && s.now().Sub(at) < lendFor {
		s.mu.Unlock()
		return false, nil
	}
	s.busy[p] = struct{}{}
	delete(s.lent, p)
	s.mu.Unlock()
	defer s.release(p)
	err := s.drop(p)
	return err == nil, err
}

// lend says that a message is about to name the attachment; false if it is being
// removed already.
func (s *Store) lend(p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.busy[p]; busy {
		return false
	}
	now := s.now()
	if now.Sub(s.pruned) >= lendFor {
		s.pruned = now
		for p, at := range s.lent {
			if now.Sub(at) >= lendFor {
				delete(s.lent, p)
			}
		}
	}
	s.lent[p] = now
	return true
}

// unlend takes lend back: there is nothing.
func (s *Store) unlend(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lent, p)
}

// dropLoneSide removes what is beside an attachment that is not there: its upload
// broke off, or its removal.
func (s *Store) dropLoneSide(p place) error {
	if !s.claim(p) {
		return nil
	}
	defer s.release(p)
	if _, err := s.dir.Lstat(p.bytes()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return remove(s.dir, p.side())
}

// dropEmpty removes the directory of an owner who has had nothing for a while.
func (s *Store) dropEmpty(dir string) error {
	s.dirs.Lock()
	defer s.dirs.Unlock()
	info, err := s.dir.Lstat(dir)
	if err != nil || s.now().Sub(info.ModTime()) < unnamedAge {
		return ignoreMissing(err)
	}
	if err := s.dir.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Debug("directory of an owner without attachments not removed", "error", err) // something else is in it
	}
	return nil
}

// eachName gives the names in a directory to fn, some at a time.
func (s *Store) eachName(ctx context.Context, dir string, fn func(names []string) error) error {
	d, err := s.dir.Open(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	defer func() { _ = d.Close() }()
	for {
		names, err := d.Readdirnames(sweepBatch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = fn(names)
		}
		if err != nil {
			return err
		}
	}
}

// count notes that attachments take more, or less.
func (s *Store) count(by int64) {
	s.changed.Add(by)
	s.used.Add(by)
}
