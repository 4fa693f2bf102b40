package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/backup"
	"github.com/pontoon-bridge/pontoon/host/internal/disk"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

const (
	// scarceSpace is free space with which a busy host may soon refuse messages.
	scarceSpace = 1 << 30
	// checkPatience bounds the reading of a large database: a gigabyte takes some
	// seconds.
	checkPatience = 20 * time.Second
	// maxWeighed bounds the files whose size is added up.
	maxWeighed = 1_000_000
	// largeLog is what a log beside the database has only if something keeps it
	// from being written back.
	largeLog = 1 << 30
)

// checkStorage looks at what the data directory holds and at the disk below it.
func checkStorage(ctx context.Context, dir string) []finding {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil // checkData told it
	}
	found := []finding{checkSpace(dir), checkFileSystem(dir)}
	found = append(found, checkDatabase(ctx, dir, checkPatience)...)
	if err := attach.Check(dir); err != nil {
		found = append(found, finding{checkFail, "attachments", err.Error()})
	} else if files, bytes, all := weigh(filepath.Join(dir, attach.Dir)); files > 0 {
		more := ""
		if !all {
			more = "more than "
		}
		found = append(found, finding{checkOK, "attachments", fmt.Sprintf("%s%d files, %s", more, files, size(bytes))})
	}
	found = append(found, checkBackup(dir))
	return append(found, checkLeftovers(dir)...)
}

// checkBackup names the newest backup that the data directory knows of.
func checkBackup(dir string) finding {
	newest, ok := backup.Newest(dir)
	if !ok {
		return finding{checkWarn, "backup", "none is known: pontoon backup FILE"}
	}
	return finding{checkOK, "backup", "the newest known is of " + newest.At.Local().Format(time.DateTime) + ": " + newest.File}
}

func checkSpace(dir string) finding {
	space, err := disk.In(dir)
	f := finding{checkOK, "free space", fmt.Sprintf("%s for the data directory, %s of it kept back", size(int64(space.Free)), size(int64(space.Spare)))}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		f.Detail = "not known on this system"
	case err != nil:
		f.Result, f.Detail = checkWarn, err.Error()
	case space.Free <= space.Spare:
		f.Result, f.Detail = checkFail, f.Detail+": messages are refused"
	case space.Free < scarceSpace:
		f.Result, f.Detail = checkWarn, f.Detail+": less than "+size(scarceSpace)
	}
	return f
}

// checkDatabase reads the database, also while a host writes to it.
func checkDatabase(ctx context.Context, dir string, patience time.Duration) []finding {
	if err := checkPlace(dir); err != nil {
		return []finding{{checkFail, "database", err.Error()}}
	}
	i, err := sqlite.Inspect(ctx, dir, hostKeys, patience)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{{checkWarn, "database", "is not there yet: the first start makes it"}}
	case err != nil:
		return []finding{{checkFail, "database", err.Error()}}
	}
	sizes := finding{checkOK, "database", fmt.Sprintf("%s, of which %s is free for new messages; log %s", size(i.Bytes), size(i.Free), size(i.WAL))}
	if i.WAL >= largeLog {
		sizes.Result, sizes.Detail = checkWarn, sizes.Detail+": something reads for long, or the disk is slow"
	}
	whole := finding{checkOK, "database check", "found nothing wrong"}
	switch {
	case i.Fault != nil:
		return []finding{{checkFail, "database check", i.Fault.Error()}}
	case i.Cut:
		whole.Result, whole.Detail = checkWarn, fmt.Sprintf("found nothing wrong, but was cut off after %s: try it on a backup", patience)
	}
	version := finding{checkOK, "schema", fmt.Sprintf("%d, the newest", i.Schema)}
	switch {
	case i.Schema > i.Newest:
		version.Result, version.Detail = checkFail, fmt.Sprintf("%d, this program knows up to %d: run a newer pontoon or restore a backup", i.Schema, i.Newest)
	case i.Schema < i.Newest:
		version.Detail = fmt.Sprintf("%d, the next start brings it up to %d", i.Schema, i.Newest)
	}
	return append([]finding{sizes, version, whole}, checkContent(i, time.Now())...)
}

// checkContent looks at what the messages tell.
func checkContent(i sqlite.Inspection, now time.Time) []finding {
	if i.Schema != i.Newest {
		return nil // not read
	}
	letters := finding{checkOK, "dead letters", "none"}
	if i.Dead > 0 {
		more := ""
		if i.DeadMore {
			more = "at least "
		}
		letters = finding{checkWarn, "dead letters", fmt.Sprintf("%s%d: pontoon dead list", more, i.Dead)}
	}
	found := []finding{letters}
	switch {
	case i.Behind == 0:
		found = append(found, finding{checkOK, "search index", "has all messages"})
	case i.Behind > 0:
		found = append(found, finding{checkOK, "search index", fmt.Sprintf("behind by %d messages: a running host catches up while it has time", i.Behind)})
	}
	if ahead := i.NewestAt.Sub(now); ahead > clockTolerance {
		found = append(found, finding{checkWarn, "newest message", fmt.Sprintf(
			"is of %s, %s ahead of this machine's clock: set it, or times and retention are wrong until then", i.NewestAt.Local().Format(time.DateTime), ahead.Round(time.Second))})
	}
	return found
}

// leftovers are what an operator may remove, and what left it.
var leftovers = []struct{ pattern, why string }{
	{"before-restore-*", "what a restore moved aside: remove it once the host has come up"},
	{".restore-*", "left by a restore that broke off: remove it"},
	{".pontoon-backup-*", "left by a backup that broke off: remove it, unless one is being made"},
}

func checkLeftovers(dir string) []finding {
	var found []finding
	for _, l := range leftovers {
		names, err := fs.Glob(os.DirFS(dir), l.pattern)
		if err != nil {
			found = append(found, finding{checkWarn, "leftovers", err.Error()})
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			_, bytes, _ := weigh(path)
			found = append(found, finding{checkWarn, "leftover", fmt.Sprintf("%s, %s: %s", path, size(bytes), l.why)})
		}
	}
	return found
}

// weigh adds up the files below a path; all is false if there were too many.
func weigh(path string) (files int, bytes int64, all bool) {
	enough := errors.New("enough")
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // gone meanwhile, or not to be read: the rest counts
		}
		if files++; files > maxWeighed {
			return enough
		}
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return files, bytes, err == nil
}

// size is a number of bytes for people.
func size(n int64) string {
	const kib = 1 << 10
	if n < kib {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/kib, 0
	for v >= kib && unit < 3 {
		v, unit = v/kib, unit+1
	}
	return fmt.Sprintf("%.1f %s", v, [...]string{"KiB", "MiB", "GiB", "TiB"}[unit])
}
