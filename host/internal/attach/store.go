// Package attach keeps the bytes of attachments in the data directory and gives
// out signed urls for them. What a client says of a file (its name, its type)
// names nothing on the disk and decides nothing that a browser acts on.
package attach

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Dir is the store in the data directory.
const Dir = "attachments"

// DefaultMaxBytes is how large a file may be unless Options say otherwise.
const DefaultMaxBytes = 25 << 20

// Options of a store. The zero value is usable, but its urls have no origin.
type Options struct {
	MaxBytes int64            // of one file; 0 = DefaultMaxBytes
	Types    []string         // accepted: TYPE/SUBTYPE or TYPE/*; nil = DefaultTypes
	Base     func() string    // the host's public url, "" if not known yet; asked at each use
	Now      func() time.Time // nil = time.Now
	Log      *slog.Logger     // what ServeHTTP can't tell the client; nil = slog.Default

	// Burst and PerHour are how many bytes one owner, or one key, may upload at once and
	// within an hour; 0 = DefaultBurst and DefaultPerHour.
	Burst, PerHour int64

	// Room is asked whether the disk may take so many bytes more; nil = it may.
	Room func(bytes int64) error

	Files   []string // directories whose files may be sent by their paths; see CheckPath
	Private []string // files that are the host's own, with NAME.* beside each, and not in the data directory: never sent

	// Named tells which of the attachments, by their IDs, a message names; nil =
	// not known: then Reclaim removes none.
	Named func(ctx context.Context, ids []string) ([]string, error)
}

// Object is what is known of an attachment.
type Object struct {
	Bucket    string `json:"bucket"`
	Path      string `json:"path"`
	MimeType  string `json:"mime_type"` // by its bytes, without parameters
	SizeBytes int64  `json:"size_bytes"`
	Name      string `json:"name"` // for people; never empty
}

// Ref names the object.
func (o Object) Ref() Ref { return Ref{o.Bucket, o.Path} }

// side is what is kept beside the bytes, as JSON.
type side struct {
	MimeType  string    `json:"mime_type"`
	SizeBytes int64     `json:"size_bytes"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

func (m side) object(p place) Object {
	r := p.ref()
	return Object{Bucket: r.Bucket, Path: r.Path, MimeType: m.MimeType, SizeBytes: m.SizeBytes, Name: m.Name}
}

// Store is the attachments of one data directory, which no other process uses
// meanwhile. All methods may be called from several goroutines.
type Store struct {
	data  *os.Root // the data directory
	dir   *os.Root // Dir in it
	keys  *keyring
	types allowed
	max   int64
	base  func() string
	now   func() time.Time
	log   *slog.Logger
	room  func(int64) error // nil = always
	named func(ctx context.Context, ids []string) ([]string, error)

	shelves []shelf  // whose files may be sent by their paths
	private []string // names of what is never sent

	ofKeys atomic.Value // string: see KeysUploadTo

	allowed *allowance

	used    atomic.Int64 // bytes that all take
	changed atomic.Int64 // of them, what came and went since Open
	dirs    sync.RWMutex // held for writing while an owner's directory is removed

	mu     sync.Mutex          // guards what follows
	busy   map[place]struct{}  // being written or removed
	lent   map[place]time.Time // about to be named by a message: since when
	pruned time.Time           // lent
}

var _ http.Handler = (*Store)(nil)

// Open opens the store in a data directory that exists, and makes what is
// missing, for the owner alone. The caller closes it.
func Open(dataDir string, o Options) (*Store, error) {
	s := &Store{
		max: o.MaxBytes, base: o.Base, now: o.Now, log: o.Log, room: o.Room, named: o.Named, private: o.Private,
		busy: map[place]struct{}{}, lent: map[place]time.Time{},
	}
	if s.max <= 0 {
		s.max = DefaultMaxBytes
	}
	if s.base == nil {
		s.base = func() string { return "" }
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.allowed = newAllowance(s.now, cmp.Or(o.Burst, DefaultBurst), cmp.Or(o.PerHour, DefaultPerHour))
	var err error
	if s.types, err = newAllowed(o.Types); err != nil {
		return nil, err
	}
	if err := s.openDirs(dataDir); err != nil {
		return nil, errors.Join(fmt.Errorf("open attachments: %w", err), s.Close())
	}
	if err := s.openShelves(o.Files); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) openDirs(dataDir string) (err error) {
	if s.data, err = os.OpenRoot(dataDir); err != nil {
		return err
	}
	if err := makeDirs(s.data, Dir); err != nil {
		return err
	}
	if s.dir, err = s.data.OpenRoot(Dir); err != nil {
		return err
	}
	if err := makeDirs(s.dir, inside...); err != nil {
		return err
	}
	s.keys, err = openKeyring(s.data)
	return err
}

// inside are the directories in Dir.
var inside = []string{tempDir, reservedDir, Bucket, Bucket + "/" + folder}

// Check reports why Open would refuse what an earlier one left in a data directory, and
// changes nothing.
func Check(dataDir string) error {
	data, err := os.OpenRoot(dataDir)
	if err == nil {
		err = errors.Join(checkLeft(data), data.Close())
	}
	if err != nil {
		return fmt.Errorf("open attachments: %w", err)
	}
	return nil
}

func checkLeft(data *os.Root) error {
	names := []string{Dir}
	for _, name := range inside {
		names = append(names, Dir+"/"+name)
	}
	for _, name := range names {
		if _, err := statDir(data, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := storedKeys(data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close lets go of the directory. Calls after it fail; what is being read can
// be read on.
func (s *Store) Close() error {
	var err error
	for _, dir := range []*os.Root{s.dir, s.data} {
		if dir != nil {
			err = errors.Join(err, dir.Close())
		}
	}
	for _, sh := range s.shelves {
		err = errors.Join(err, sh.root.Close())
	}
	return err
}

// MaxBytes is how large a file may be.
func (s *Store) MaxBytes() int64 { return s.max }

// Stat describes an attachment, or ErrNotFound.
func (s *Store) Stat(ref Ref) (Object, error) {
	f, o, _, err := s.open(ref)
	if err != nil {
		return Object{}, err
	}
	return o, f.Close()
}

// Open opens an attachment, or ErrNotFound. The caller closes it; it can be
// read on after Delete.
func (s *Store) Open(ref Ref) (io.ReadSeekCloser, Object, error) {
	f, o, _, err := s.open(ref)
	if err != nil {
		return nil, Object{}, err
	}
	return f, o, nil
}

func (s *Store) open(ref Ref) (*os.File, Object, time.Time, error) {
	p, err := ref.place()
	if err != nil {
		return nil, Object{}, time.Time{}, err
	}
	f, m, err := s.load(p)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: found nothing at %s", ErrNotFound, ref)
	}
	if err != nil {
		return nil, Object{}, time.Time{}, err
	}
	return f, m.object(p), m.CreatedAt, nil
}

// load opens the bytes and reads what is beside them.
func (s *Store) load(p place) (*os.File, side, error) {
	f, info, err := openFile(s.dir, p.bytes())
	if err != nil {
		return nil, side{}, fmt.Errorf("open attachment: %w", err)
	}
	var m side
	b, err := readSmall(s.dir, p.side())
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil && (m.SizeBytes != info.Size() || essence(m.MimeType) != m.MimeType || m.MimeType == "") {
		err = fmt.Errorf("%s does not fit the file beside it: found %d bytes, expected %d", p.side(), info.Size(), m.SizeBytes)
	}
	if err != nil {
		return nil, side{}, errors.Join(fmt.Errorf("open attachment: %w", err), f.Close())
	}
	return f, m, nil
}

// Delete removes an attachment, or ErrNotFound.
func (s *Store) Delete(ref Ref) error {
	p, err := ref.place()
	if err != nil {
		return err
	}
	if !s.claim(p) {
		return fmt.Errorf("%w: %s is being written or removed", ErrNotFound, ref)
	}
	defer s.release(p)
	return s.drop(p)
}

// drop is Delete for whoever claimed the place.
func (s *Store) drop(p place) error {
	info, err := lstat(s.dir, p.bytes())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: found nothing at %s", ErrNotFound, p.ref())
	} else if err != nil {
		return fmt.Errorf("delete attachment: %w", err)
	}
	size := info.Size()
	if side, err := s.dir.Lstat(p.side()); err == nil {
		size += side.Size()
	}
	// Out of sight at once; what a crash leaves then is Sweep's.
	if err := s.dir.Rename(p.bytes(), p.temp()); err != nil {
		return fmt.Errorf("delete attachment: %w", err)
	}
	if err := errors.Join(remove(s.dir, p.side()), syncDir(s.dir, p.dir()), remove(s.dir, p.temp())); err != nil {
		return fmt.Errorf("delete attachment: %w", err)
	}
	s.count(-size)
	return nil
}

// claim lets one caller at a time change what is at a place.
func (s *Store) claim(p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.busy[p]; taken {
		return false
	}
	s.busy[p] = struct{}{}
	return true
}

func (s *Store) release(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, p)
}
