package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/disk"
)

// dirName is where a host keeps the backups that it makes by itself, in its data
// directory, and the note of the newest that somebody else asked for.
const (
	dirName  = "backups"
	noteName = "newest.json"
	partName = "part.db" // a backup that is being made
)

// keepAutomatic is how many backups of before a migration are kept.
const keepAutomatic = 3

// BeforeMigration copies the database of dir as it is, of the named schema. The
// attachments stay where they are: a migration does not touch them.
func BeforeMigration(ctx context.Context, e Engine, dir string, schema int64) (file string, err error) {
	to := filepath.Join(dir, dirName)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", fmt.Errorf("make directory of backups: %w", err)
	}
	if err := enoughRoom(e, dir); err != nil {
		return "", err
	}
	file = filepath.Join(to, fmt.Sprintf("schema-%d-%s.db", schema, time.Now().UTC().Format("20060102T150405.000Z")))
	// Under another name until it is whole: one that a crash cut off must not be
	// taken for the newest backup. Such a one is in the way of nobody but its next.
	part := filepath.Join(to, partName)
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("remove broken backup: %w", err)
	}
	if err := e.Snapshot(ctx, dir, part); err != nil {
		return "", err
	}
	if err := os.Rename(part, file); err != nil {
		return "", fmt.Errorf("write backup: %w", err)
	}
	all := known(dir)
	for _, old := range all[:max(0, len(all)-keepAutomatic)] {
		if err := os.Remove(old.File); err != nil {
			return "", fmt.Errorf("remove old backup: %w", err)
		}
	}
	return file, nil
}

func enoughRoom(e Engine, dir string) error {
	space, err := disk.In(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	info, serr := os.Stat(database(e, dir))
	if err := errors.Join(err, serr); err != nil {
		return err
	}
	if size := uint64(info.Size()); size > space.Free {
		return fmt.Errorf("a copy of the database takes %d MiB, and %d MiB are free", size>>20, space.Free>>20)
	}
	return nil
}

// Known is a backup that a data directory knows of.
type Known struct {
	File string    `json:"file"` // absolute
	At   time.Time `json:"at"`
}

// Newest finds the newest backup of dir that is known and still there.
func Newest(dir string) (k Known, ok bool) {
	all := known(dir)
	var noted Known
	b, err := os.ReadFile(filepath.Join(dir, dirName, noteName))
	if err == nil && json.Unmarshal(b, &noted) == nil {
		if _, err := os.Stat(noted.File); err == nil {
			all = append(all, noted)
		}
	}
	if len(all) == 0 {
		return Known{}, false
	}
	return slices.MaxFunc(all, func(a, b Known) int { return a.At.Compare(b.At) }), true
}

// Automatic lists the files of the backups that the host made, oldest first.
func Automatic(dir string) []string {
	var files []string
	for _, k := range known(dir) {
		files = append(files, k.File)
	}
	return files
}

// known lists the backups that the host made, oldest first.
func known(dir string) []Known {
	abs, err := filepath.Abs(filepath.Join(dir, dirName))
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return nil
	}
	var all []Known
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasPrefix(e.Name(), "schema-") && strings.HasSuffix(e.Name(), ".db") {
			all = append(all, Known{filepath.Join(abs, e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b Known) int { return a.At.Compare(b.At) })
	return all
}

// note remembers where a backup was written, for whoever needs it in a hurry. A
// backup that can't be noted is one all the same.
func note(dir, file string) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return
	}
	b, err := json.Marshal(Known{abs, time.Now().UTC()})
	if err != nil || os.MkdirAll(filepath.Join(dir, dirName), 0o700) != nil {
		return
	}
	_ = os.WriteFile(filepath.Join(dir, dirName, noteName), b, 0o600)
}
