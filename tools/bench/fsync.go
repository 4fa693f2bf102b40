package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A log that is used again, as SQLite's is: pages are overwritten in turn.
const (
	syncPage  = 4096
	syncPages = 1024
	syncTime  = 300 * time.Millisecond // of one look at the disk
)

// syncTook is the median time of writing a page to a file in dir and calling
// fsync: what no commit can be faster than.
func syncTook(dir string) (took time.Duration, err error) {
	path := filepath.Join(dir, "fsync")
	f, err := os.Create(path)
	if err != nil {
		return 0, fmt.Errorf("measure fsync: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	if _, err = f.Write(make([]byte, syncPage*syncPages)); err == nil {
		err = f.Sync()
	}
	var h histogram
	page := make([]byte, syncPage)
	for i, end := 0, now()+syncTime; err == nil && (i == 0 || now() < end); i++ {
		page[0] = byte(i)
		began := now()
		if _, err = f.WriteAt(page, int64(i%syncPages*syncPage)); err == nil {
			err = f.Sync()
		}
		h.add(now() - began)
	}
	if err != nil {
		return 0, fmt.Errorf("measure fsync: %w", err)
	}
	return h.quantile(0.5), nil
}
