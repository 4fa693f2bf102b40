package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
)

// Limits of calls to agents that the host dials.
const (
	maxHeaderFields = 32
	maxHeaderBytes  = 8 << 10
	maxAtOnce       = 1024             // turns
	maxRetryAfter   = time.Minute      // an agent that wants longer is away
	tripAfter       = 5                // failures in a row, whatever turns they were of
	restAfterTrip   = 10 * time.Second // less than the hub waits before it asks again
)

// Remote is what the kinds of agents that the host dials have in common, as JSON.
type Remote struct {
	URL          string            `json:"url"`
	Headers      map[string]string `json:"headers,omitempty"`
	AllowPrivate safehttp.Networks `json:"allow_private"`
	MaxTurns     int               `json:"max_turns,omitempty"` // that it has at once; 0 = hub.DefaultMaxTurns
}

// The fields that Remote has, as operators are asked for them.
var (
	urlField     = Field{"url", "url", true, "Where the host calls it. https, unless it is on this machine and allowed below"}
	turnsField   = Field{"max_turns", "number", false, "Most turns that it has at once, 1 to 1024; 64 unless said otherwise. Others wait"}
	headersField = Field{"headers", "headers", false, "Sent with each call, such as Authorization"}
	privateField = Field{"allow_private", "networks", false, "Networks of private addresses that it may be in, such as 127.0.0.1/32; none = public addresses only"}
)

// check names the field that is wrong. It shows no value of a header.
func (r *Remote) check() error {
	if _, err := r.AllowPrivate.CheckURL(r.URL); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if r.MaxTurns < 0 || r.MaxTurns > maxAtOnce {
		return fmt.Errorf("max_turns: found %d, expected 1 to %d", r.MaxTurns, maxAtOnce)
	}
	if len(r.Headers) > maxHeaderFields {
		return fmt.Errorf("headers: found %d, expected at most %d", len(r.Headers), maxHeaderFields)
	}
	for name, value := range r.Headers {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("headers: found %.60q, expected the name of a header", name)
		case ownHeader(name):
			return fmt.Errorf("headers.%s: the host sets this one itself", name)
		case len(value) > maxHeaderBytes || !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("headers.%s: found a value that is no header's, or longer than %d bytes", name, maxHeaderBytes)
		}
	}
	return nil
}

// ownHeader reports the headers that would change what is sent or to whom.
func ownHeader(name string) bool {
	switch strings.ToLower(name) {
	case "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "te", "trailer", "connection", "upgrade", "keep-alive",
		"proxy-authorization", "proxy-connection", "expect", "accept", "accept-encoding":
		return true
	}
	return strings.HasPrefix(strings.ToLower(name), "webhook-")
}

// Period is a time in JSON: a string such as "1m30s".
type Period time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (s *Period) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	d, derr := time.ParseDuration(text)
	if err != nil || derr != nil {
		return fmt.Errorf("found %.40s, expected a time such as \"30s\"", b)
	}
	*s = Period(d)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (s Period) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, time.Duration(s).String()), nil
}

// within is the time itself, or the default if it is 0; an error names the field.
func (s Period) within(field string, least, most time.Duration) error {
	if d := time.Duration(s); d != 0 && (d < least || d > most) {
		return fmt.Errorf("%s: found %s, expected from %s to %s", field, d, least, most)
	}
	return nil
}

func (s Period) or(d time.Duration) time.Duration {
	if s == 0 {
		return d
	}
	return time.Duration(s)
}

// remote calls one agent: with patience, and not while it is broken.
type remote struct {
	Remote
	client  *safehttp.Client
	breaker *gobreaker.TwoStepCircuitBreaker[any]
	tries   uint
	first   time.Duration // before the second try
	rest    time.Duration
	secrets *scrubber
}

// newRemote makes what calls the agent. Close must be called.
func newRemote(c Remote, o safehttp.Options, tries uint) *remote {
	r := &remote{Remote: c, tries: tries, first: 500 * time.Millisecond, rest: restAfterTrip, secrets: newScrubber(c.Headers)}
	o.Allow, o.Idle = c.AllowPrivate, r.MaxTurns() // else most of many turns would begin with a connection
	r.client = safehttp.New(o)
	r.arm()
	return r
}

// arm makes the breaker.
func (r *remote) arm() {
	r.breaker = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout: r.rest, ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsSuccessful: func(err error) bool { return !isAbsence(err) || isLate(err) }, // who is slow is there
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})
}

// MaxTurns implements hub.Limited.
func (r *remote) MaxTurns() int { return cmp.Or(r.Remote.MaxTurns, hub.DefaultMaxTurns) }

// Close implements io.Closer.
func (r *remote) Close() error {
	r.client.Close()
	return nil
}

// statusError is an answer that is no success.
type statusError struct {
	code  int
	after time.Duration // that the agent asks to be left alone; 0 = it does not say
	words string        // what it said, in one line; "" = nothing
}

// maxWords bounds what is kept of what an agent says about its failure, in bytes.
const maxWords = 2 << 10

func (e *statusError) Error() string {
	said := fmt.Sprintf("answered %d %s", e.code, http.StatusText(e.code))
	if e.words == "" {
		return said
	}
	return said + ": " + e.words
}

// refuses reports an answer by which the agent does not take the turn, and would not
// take it later.
func (e *statusError) refuses() bool { return !isAbsence(e) }

// isAbsence reports the errors of an agent that is broken or not there, and not
// of one that did not like this request: the same request may succeed later.
func isAbsence(err error) bool {
	var s *statusError
	var refused *safehttp.Refused
	var elsewhere *safehttp.Redirected
	var answer *answerError
	var own *ownError
	switch {
	case err == nil, errors.As(err, &refused), errors.As(err, &elsewhere), errors.As(err, &answer), errors.As(err, &own):
		return false
	case errors.As(err, &s):
		return s.code >= 500 || s.code == http.StatusRequestTimeout || s.code == http.StatusTooEarly || s.code == http.StatusTooManyRequests
	}
	return true // the network's
}

// ownError is the error of a call that the host could not make, whatever the agent is.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }
func (e *ownError) Unwrap() error { return e.err }

// answerError is the error of an answer that says nothing the host understands.
type answerError struct{ err error }

func (e *answerError) Error() string { return "answer: " + e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

// begunError is the error of a call that may have reached the agent, and is not
// made again.
type begunError struct{ err error }

func (e *begunError) Error() string { return e.err.Error() }
func (e *begunError) Unwrap() error { return e.err }

// try runs call until it succeeds, fails in a way that trying again does not
// mend, or was tried often enough, with the attempts that the turn had before. An
// agent that is not there is hub.ErrAway, one that is too slow hub.ErrLate.
func try[T any](ctx context.Context, r *remote, t *hub.Turn, call func() (T, error)) (T, error) {
	given := false
	left := int(r.tries) - t.Late //nolint:gosec // G115: at most 10
	if left <= 0 {
		var none T
		return none, fmt.Errorf("%w: %d attempts were made before", hub.ErrLate, t.Late)
	}
	out, err := backoff.Retry(ctx, func() (T, error) {
		done, err := r.breaker.Allow()
		if err != nil { // it is broken: no use to ask it now
			var none T
			return none, backoff.Permanent(fmt.Errorf("%w: it failed too often: the next try is in %s at most", hub.ErrAway, r.rest))
		}
		over := false
		defer func() {
			if !over { // it panicked
				done(errors.New("panicked"))
			}
		}()
		out, err := call()
		if cause := context.Cause(ctx); cause != nil && err != nil {
			err = fmt.Errorf("%w: %w", context.Canceled, cause)
		}
		over = true
		done(err)
		if isLate(err) {
			t.IsLate(err)
		}
		given = given || mayBeGiven(err)
		return out, retryable(err)
	}, backoff.WithMaxTries(uint(left)), backoff.WithMaxElapsedTime(0), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: r.first, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 30 * time.Second,
	}))
	var asked *backoff.RetryAfterError
	var status *statusError
	switch {
	case err == nil:
		return out, nil
	case context.Cause(ctx) != nil:
		return out, context.Cause(ctx)
	case isLate(err):
		return out, fmt.Errorf("%w: %w", hub.ErrLate, err)
	case errors.As(err, &asked), isAway(err):
		err = fmt.Errorf("%w: %w", hub.ErrAway, err)
	case errors.As(err, &status) && status.refuses():
		err = fmt.Errorf("%w: %w", hub.ErrTurnRefused, err)
	}
	if given && errors.Is(err, hub.ErrAway) {
		err = fmt.Errorf("%w: %w", hub.ErrLeft, err)
	}
	return out, err
}

// retryable marks an error for backoff.
func retryable(err error) error {
	var s *statusError
	var begun *begunError
	switch {
	case err == nil:
		return nil
	case !isAbsence(err), errors.As(err, &begun):
		return backoff.Permanent(err)
	case errors.As(err, &s) && s.after > maxRetryAfter:
		return backoff.Permanent(err)
	case errors.As(err, &s) && s.after > 0:
		return fmt.Errorf("%w: %w", err, &backoff.RetryAfterError{Duration: s.after})
	}
	return err
}

// mayBeGiven reports the errors of a call that the agent may know of all the same.
func mayBeGiven(err error) bool {
	var s *statusError
	var unreached *unreachedError
	var own *ownError
	switch {
	case err == nil, errors.As(err, &unreached), errors.As(err, &own):
		return false
	case errors.As(err, &s):
		return s.code == http.StatusBadGateway || s.code == http.StatusGatewayTimeout || s.code == http.StatusRequestTimeout
	}
	return true
}

// unreachedError is the error of a call for which there was no connection.
type unreachedError struct{ err error }

func (e *unreachedError) Error() string { return e.err.Error() }
func (e *unreachedError) Unwrap() error { return e.err }

// isLate reports the errors of a call that reached the agent, or what stands before
// it, and was not answered in time.
func isLate(err error) bool {
	var s *statusError
	var unreached *unreachedError
	var late net.Error
	switch {
	case err == nil, errors.As(err, &unreached), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &s):
		return s.code == http.StatusGatewayTimeout
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout()
}

// isAway reports what an agent that comes back later does not do again; one
// that answers 500 was there.
func isAway(err error) bool {
	var s *statusError
	if errors.As(err, &s) {
		switch s.code {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests, http.StatusTooEarly, http.StatusRequestTimeout:
			return true
		}
		return false
	}
	var begun *begunError
	return isAbsence(err) && !errors.As(err, &begun)
}

// post sends body and returns the answer if it is a success. The caller closes
// its body.
func (r *remote) post(ctx context.Context, body io.Reader, header http.Header) (*http.Response, error) {
	reached := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached = true }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, body)
	if err != nil {
		return nil, &answerError{errors.New("the url can't be called")}
	}
	if q, ok := body.(*ask); ok {
		req.ContentLength, req.GetBody = int64(q.Len()), q.again
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Pontoon")
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	resp, err := r.client.Do(req)
	if err != nil && !reached {
		return nil, &unreachedError{plain(err)}
	}
	if err != nil {
		return nil, plain(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	return nil, &statusError{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"), time.Now()), r.wordsOf(resp.Body)}
}

// wordsOf reads what an agent says of its failure, and closes it.
func (r *remote) wordsOf(body io.ReadCloser) string {
	const most = maxWords + maxHeaderBytes // as much as it says, and room to see a secret whole
	read, _ := io.ReadAll(io.LimitReader(body, most))
	_, _ = io.CopyN(io.Discard, body, 4<<10) // so that the connection may be used again
	_ = body.Close()
	said := string(read)
	if len(read) == most {
		said = r.secrets.begun(said)
	} else {
		said = r.secrets.text(said)
	}
	said = strings.ToValidUTF8(said[:min(len(said), maxWords)], "\uFFFD")
	return strings.Join(strings.Fields(said), " ")
}

// plain is an error of the network in words that name no address twice.
func plain(err error) error {
	var t net.Error
	if errors.As(err, &t) && t.Timeout() {
		return fmt.Errorf("no answer in time: %w", err)
	}
	return err
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	if n, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
