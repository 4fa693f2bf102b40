package sqlite

import (
	"errors"
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// raw is a SQLite connection below database/sql, for the writer alone: binding
// a row there costs half of what the driver's interface does. It is not safe
// for concurrent use, so SQLite need not lock either.
type raw struct {
	tls   *libc.TLS
	db    uintptr
	log   uintptr // int32 in SQLite's memory: pages of the write-ahead log after the last commit
	arena arena

	prepared []*stmt
}

// sqliteError carries SQLite's extended result code.
type sqliteError struct {
	code int32
	msg  string
}

func (e *sqliteError) Error() string { return fmt.Sprintf("%s (%d)", e.msg, e.code) }

func (e *sqliteError) constraint() bool { return e.code&0xff == sqlite3.SQLITE_CONSTRAINT }

func openRaw(path string, pragmas ...string) (*raw, error) {
	c := &raw{tls: libc.NewTLS()}
	name, err := libc.CString(path)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	out := c.tls.Alloc(8)
	defer c.tls.Free(8)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, out, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	c.db = *(*uintptr)(pointer(out))
	if rc != sqlite3.SQLITE_OK {
		err := c.fail(rc)
		c.close()
		return nil, err
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	for _, p := range pragmas {
		if err := c.exec("PRAGMA " + p); err != nil {
			c.close()
			return nil, fmt.Errorf("pragma %s: %w", p, err)
		}
	}
	if c.log = sqlite3.Xsqlite3_malloc64(c.tls, 4); c.log == 0 {
		c.close()
		return nil, errors.New("out of memory")
	}
	*c.logPages() = 0
	// In place of the automatic checkpoint, which keeps its errors to itself.
	hook := logGrew
	sqlite3.Xsqlite3_wal_hook(c.tls, c.db, *(*uintptr)(unsafe.Pointer(&struct {
		f func(*libc.TLS, uintptr, uintptr, uintptr, int32) int32
	}{hook})), c.log)
	return c, nil
}

// logGrew is called by SQLite after each commit.
func logGrew(_ *libc.TLS, log, _, _ uintptr, pages int32) int32 {
	*(*int32)(pointer(log)) = pages
	return sqlite3.SQLITE_OK
}

// logPages is how long the write-ahead log was after the last commit.
func (c *raw) logPages() *int32 { return (*int32)(pointer(c.log)) }

// checkpointMode is how much a checkpoint waits for.
type checkpointMode int32

const (
	passive  checkpointMode = sqlite3.SQLITE_CHECKPOINT_PASSIVE  // nobody
	truncate checkpointMode = sqlite3.SQLITE_CHECKPOINT_TRUNCATE // readers, and then cuts the log to nothing
)

// checkpoint moves the write-ahead log into the database.
func (c *raw) checkpoint(mode checkpointMode) error {
	if rc := sqlite3.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, int32(mode), 0, 0); rc != sqlite3.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

func (c *raw) close() {
	if c.db != 0 {
		// With a statement left, the connection would live on, and the log beside
		// the database would not be written back.
		for _, s := range c.prepared {
			s.finalize()
		}
		sqlite3.Xsqlite3_close_v2(c.tls, c.db)
	}
	if c.log != 0 {
		sqlite3.Xsqlite3_free(c.tls, c.log)
	}
	c.arena.free(c.tls)
	c.tls.Close()
}

func (c *raw) fail(rc int32) error {
	if rc == sqlite3.SQLITE_OK || c.db == 0 {
		return &sqliteError{code: rc, msg: "sqlite"}
	}
	return &sqliteError{code: rc, msg: libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))}
}

// exec runs SQL without parameters and without rows.
func (c *raw) exec(sql string) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer s.finalize()
	return s.run()
}

// inTransaction reports whether a transaction is open: an error may have
// rolled it back already.
func (c *raw) inTransaction() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) == 0 }

// changes is how many rows the last statement changed.
func (c *raw) changes() int32 { return sqlite3.Xsqlite3_changes(c.tls, c.db) }

// lastRow is the rowid that was inserted last.
func (c *raw) lastRow() int64 { return sqlite3.Xsqlite3_last_insert_rowid(c.tls, c.db) }

func (c *raw) prepare(sql string) (*stmt, error) {
	z, err := libc.CString(sql)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, z)
	out := c.tls.Alloc(8)
	defer c.tls.Free(8)
	if rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, z, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, out, 0); rc != sqlite3.SQLITE_OK {
		return nil, c.fail(rc)
	}
	s := &stmt{c: c, p: *(*uintptr)(pointer(out))}
	c.prepared = append(c.prepared, s)
	return s, nil
}

// stmt is a prepared statement. bind fills its parameters from left to right.
type stmt struct {
	c *raw
	p uintptr
	n int32
}

func (s *stmt) int(v int64) {
	s.n++
	sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, s.n, v)
}

func (s *stmt) text(v string) {
	s.n++
	sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, s.n, s.c.arena.put(s.c.tls, v), int32(len(v)), sqlite3.SQLITE_STATIC)
}

// textOrNull binds NULL for "".
func (s *stmt) textOrNull(v string) {
	if v == "" {
		s.null()
		return
	}
	s.text(v)
}

// blobOrNull binds NULL for an empty v.
func (s *stmt) blobOrNull(v []byte) {
	if len(v) == 0 {
		s.null()
		return
	}
	s.n++
	p := s.c.arena.put(s.c.tls, unsafe.String(&v[0], len(v)))
	sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, s.n, p, int32(len(v)), sqlite3.SQLITE_STATIC)
}

func (s *stmt) null() {
	s.n++
	sqlite3.Xsqlite3_bind_null(s.c.tls, s.p, s.n)
}

// run executes the statement with what was bound and makes it ready again.
func (s *stmt) run() error {
	rc := sqlite3.Xsqlite3_step(s.c.tls, s.p)
	for rc == sqlite3.SQLITE_ROW {
		rc = sqlite3.Xsqlite3_step(s.c.tls, s.p)
	}
	var err error
	if rc != sqlite3.SQLITE_DONE {
		err = s.c.fail(rc)
	}
	sqlite3.Xsqlite3_reset(s.c.tls, s.p)
	s.n = 0
	s.c.arena.reset()
	return err
}

// finalize gives the statement back; a second time it does nothing.
func (s *stmt) finalize() {
	sqlite3.Xsqlite3_finalize(s.c.tls, s.p)
	s.p = 0
}

// arena lends SQLite memory for the parameters of one statement. Values stay
// where they are until reset; the blocks are kept for the next statement.
type arena struct {
	blocks []block
	cur    int
}

type block struct {
	base uintptr
	mem  []byte
	used int
}

// arenaBlock holds the rows of an ordinary statement; a larger value gets a
// block of its own size.
const arenaBlock = 64 << 10

// arenaKeep bounds what a burst of giants leaves behind.
const arenaKeep = 16

func (a *arena) put(tls *libc.TLS, v string) uintptr {
	for ; a.cur < len(a.blocks); a.cur++ {
		if b := &a.blocks[a.cur]; len(b.mem)-b.used >= len(v) {
			copy(b.mem[b.used:], v)
			b.used += len(v)
			return b.base + uintptr(b.used-len(v))
		}
	}
	size := max(arenaBlock, len(v))
	base := sqlite3.Xsqlite3_malloc64(tls, uint64(size))
	if base == 0 {
		panic("store: out of memory")
	}
	a.blocks = append(a.blocks, block{base: base, mem: unsafe.Slice((*byte)(pointer(base)), size)})
	a.cur = len(a.blocks) - 1
	return a.put(tls, v)
}

func (a *arena) reset() {
	for i := range a.blocks[:min(a.cur+1, len(a.blocks))] {
		a.blocks[i].used = 0
	}
	a.cur = 0
}

// trim frees what a burst left behind. Nothing may be bound.
func (a *arena) trim(tls *libc.TLS) {
	for len(a.blocks) > arenaKeep {
		last := len(a.blocks) - 1
		sqlite3.Xsqlite3_free(tls, a.blocks[last].base)
		a.blocks = a.blocks[:last]
	}
}

func (a *arena) free(tls *libc.TLS) {
	for _, b := range a.blocks {
		sqlite3.Xsqlite3_free(tls, b.base)
	}
	a.blocks = nil
}

// pointer turns an address of SQLite's own memory, which the collector never
// moves, into a pointer.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
