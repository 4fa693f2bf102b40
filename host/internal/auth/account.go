package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// LinkFile holds, in the data directory, the address at which the operator is
// set up, for as long as it opens something.
const LinkFile = "setup.link"

// LinkLife is how long a link for a forgotten password counts.
const LinkLife = time.Hour

// MaxOperatorName bounds the name of the operator.
const MaxOperatorName = 64 // bytes

// Account is the operator's: name, password and sessions.
type Account struct {
	AccountOptions
	hasher *hasher
	failed *rate.Limiter // of lines of the audit log
	unsaid int           // failures since the last line; guarded by mu
	setup  sync.Mutex    // one setup at a time

	mu       sync.Mutex // guards what follows
	code     []byte     // hash of what sets the operator up; nil = nothing does
	codeEnds time.Time  // zero = with the process
}

// AccountOptions are what an account works on; all are needed.
type AccountOptions struct {
	Store    Ledger
	Dir      string                   // data directory
	URL      func(code string) string // where the operator is set up
	Limiter  Limiter
	Failures *Failures // of what is refused
	Now      func() time.Time
}

// Limiter slows down who guesses passwords.
type Limiter interface {
	// Attempt counts a try. wait > 0 = it is refused, for that long; else done is
	// called once the password was right. A try counts as wrong until then.
	Attempt(remote string) (done func(right bool), wait time.Duration)
}

// NewAccount makes the account of a store.
func NewAccount(o AccountOptions) *Account {
	return &Account{AccountOptions: o, hasher: newHasher(), failed: rate.NewLimiter(rate.Every(10*time.Second), 20)}
}

// FieldError is what is wrong with one field of what somebody gave.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// WaitError = too many tries: none counts before the time is over.
type WaitError struct{ Wait time.Duration }

func (e *WaitError) Error() string {
	return fmt.Sprintf("too many tries: wait %s", e.Wait.Round(time.Second))
}

// Opened is a session that began. Secret is what its cookie holds.
type Opened struct {
	ledger.Session
	Secret string
}

// Begin makes the link at which the operator is set up, if nobody was yet; ""
// = somebody was. Each start makes a new one.
func (a *Account) Begin(ctx context.Context) (url string, err error) {
	_, err = a.Store.Operator(ctx)
	switch {
	case err == nil:
		return "", a.forget()
	case !errors.Is(err, ledger.ErrNotFound):
		return "", err
	}
	return a.newLink(time.Time{})
}

// Close makes the link worthless.
func (a *Account) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code = nil
	return a.forget()
}

// NewLink makes a link at which name and password are set anew, whoever was set
// up; a link made before counts no more.
func (a *Account) NewLink(ctx context.Context) (url string, ends time.Time, err error) {
	ends = a.Now().Add(LinkLife)
	if url, err = a.newLink(ends); err != nil {
		return "", ends, err
	}
	return url, ends, a.Store.Note(ctx, By(ctx, "operator.link", "operator", nil))
}

func (a *Account) newLink(ends time.Time) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	code := Generate(SetupPrefix)
	url := a.URL(code)
	path := filepath.Join(a.Dir, LinkFile)
	if err := a.forget(); err != nil { // one with other rights must not stay
		return "", err
	}
	if err := os.WriteFile(path, []byte(url+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write setup link: %w", err)
	}
	a.code, a.codeEnds = Hash(code), ends
	return url, nil
}

func (a *Account) forget() error {
	if err := os.Remove(filepath.Join(a.Dir, LinkFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove setup link: %w", err)
	}
	return nil
}

// opens reports whether the code sets the operator up.
func (a *Account) opens(code string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := subtle.ConstantTimeCompare(Hash(code), a.code) == 1
	return same && a.code != nil && (a.codeEnds.IsZero() || a.Now().Before(a.codeEnds))
}

// Link reports whether a code sets the operator up, and whether there is one already.
func (a *Account) Link(ctx context.Context, code string) (opens, operated bool, err error) {
	_, err = a.Store.Operator(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return false, false, err
	}
	return a.opens(code), err == nil, nil
}

// SetUp sets name and password by the code of a link, which then opens nothing
// any more, ends all sessions and begins one. Errors are ErrInvalid for a code
// that opens nothing, *FieldError, ErrBusy and those of storage.
func (a *Account) SetUp(ctx context.Context, code, name, password string) (Opened, error) {
	a.setup.Lock()
	defer a.setup.Unlock()
	if !a.opens(code) {
		a.noteFailure(ctx, "operator.setup.refused")
		return Opened{}, ErrInvalid
	}
	if err := checkOperator(name); err != nil {
		return Opened{}, err
	}
	if err := CheckPassword(password, name); err != nil {
		return Opened{}, &FieldError{"password", err.Error()}
	}
	hash, err := a.hasher.hash(ctx, password)
	if err != nil {
		return Opened{}, err
	}
	if !a.opens(code) { // another link was made meanwhile
		return Opened{}, ErrInvalid
	}
	by := By(ctx, "operator.setup", "operator", map[string]string{"name": name})
	by.Actor, by.Via = name, "link"
	if err := a.Store.SetOperator(ctx, name, hash, by); err != nil {
		return Opened{}, err
	}
	if err := a.Close(); err != nil {
		return Opened{}, err
	}
	return a.open(ctx, name)
}

func checkOperator(name string) error {
	wrong := func(format string, args ...any) error {
		return &FieldError{"name", fmt.Sprintf(format, args...)}
	}
	switch {
	case name == "" || len(name) > MaxOperatorName:
		return wrong("found %d bytes, expected 1 to %d", len(name), MaxOperatorName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return wrong("found what can't be shown, expected printable text")
	case strings.TrimSpace(name) != name:
		return wrong("found a space at an end, expected none")
	case name == operatorName || name == nobody:
		return wrong("%s means somebody else in the audit log: choose another name", name)
	}
	return nil
}

// LogIn begins a session. Whatever is wrong the answer is ErrInvalid, after the
// same work; others are *WaitError, ErrBusy and those of storage.
func (a *Account) LogIn(ctx context.Context, name, password string) (Opened, error) {
	done, wait := a.Limiter.Attempt(OriginOf(ctx).Remote)
	if wait > 0 {
		return Opened{}, &WaitError{wait}
	}
	o, err := a.Store.Operator(ctx)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return Opened{}, err
	}
	right, err := a.hasher.matches(ctx, o.Password, password)
	if err != nil {
		return Opened{}, err
	}
	named := subtle.ConstantTimeCompare(Hash(name), Hash(o.Name)) == 1
	if !right || !named {
		a.noteFailure(ctx, "session.refused")
		return Opened{}, ErrInvalid
	}
	done(true)
	return a.open(ctx, o.Name)
}

// open begins a session of who has shown to be the operator.
func (a *Account) open(ctx context.Context, name string) (Opened, error) {
	from := OriginOf(ctx)
	secret, now := Generate(SessionPrefix), a.Now()
	by := By(ctx, "session.open", "", nil)
	by.Actor = name
	made, _, err := a.Store.CreateSession(ctx, ledger.Session{
		Hash: Hash(secret), Lifetime: ledger.Lifetime{ExpiresAt: now.Add(SessionLife)}, Remote: from.Remote, UserAgent: from.UserAgent,
	}, now.Add(-SessionIdle), by)
	return Opened{made, secret}, err
}

// SetPassword changes the password of who is logged in (or has the host's key),
// who must know the present one, and ends all other sessions. Errors are as of
// LogIn, and *FieldError.
func (a *Account) SetPassword(ctx context.Context, h Holder, present, password string) error {
	o, err := a.Store.Operator(ctx)
	if err != nil {
		return err
	}
	if err := CheckPassword(password, o.Name); err != nil {
		return &FieldError{"password", err.Error()}
	}
	done, wait := a.Limiter.Attempt(OriginOf(ctx).Remote)
	if wait > 0 {
		return &WaitError{wait}
	}
	right, err := a.hasher.matches(ctx, o.Password, present)
	if err != nil {
		return err
	}
	if !right {
		a.noteFailure(ctx, "operator.password.refused")
		return &FieldError{"present", "is not the present password"}
	}
	done(true)
	hash, err := a.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	return a.Store.SetPassword(ctx, o.Password, hash, h.Session, By(ctx, "operator.password", "operator", nil))
}

// Rename changes the operator's name.
func (a *Account) Rename(ctx context.Context, name string) error {
	if err := checkOperator(name); err != nil {
		return err
	}
	o, err := a.Store.Operator(ctx)
	if err != nil || o.Name == name {
		return err
	}
	by := By(ctx, "operator.rename", "operator", nil)
	by.Before, by.After = Diff(map[string]string{"name": o.Name}, map[string]string{"name": name})
	return a.Store.RenameOperator(ctx, name, by)
}

// noteFailure counts a failure, and writes it into the audit log, of many only
// some: how many were left out is in the next line.
func (a *Account) noteFailure(ctx context.Context, action string) {
	a.Failures.Add(Login)
	a.mu.Lock()
	if !a.failed.AllowN(a.Now(), 1) {
		a.unsaid++
		a.mu.Unlock()
		return
	}
	unsaid := a.unsaid
	a.unsaid = 0
	a.mu.Unlock()
	by := By(ctx, action, "operator", nil)
	if unsaid > 0 {
		by = By(ctx, action, "operator", map[string]int{"left_out_before": unsaid})
	}
	_ = a.Store.Note(ctx, by) // storage in trouble says so itself; the answer is the same
}
