package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// Problem is why the API refused, as RFC 9457 has it.
type Problem struct {
	Status int     `json:"status"`
	Type   string  `json:"type"`
	Title  string  `json:"title"`
	Detail string  `json:"detail"`
	Errors []Fault `json:"errors"`

	Changes []api.Changed `json:"changes"` // of status 412: since the version that the request knows

	After string `json:"-"` // seconds after which a retry makes sense, as Retry-After has it; "" = the API does not say
}

// retry tells the browser when a retry makes sense, if that is known.
func (p *Problem) retry(w http.ResponseWriter) {
	if p.After != "" {
		w.Header().Set("Retry-After", p.After)
	}
}

// wait is what After says, in words.
func (p *Problem) wait() string {
	n, err := strconv.Atoi(p.After)
	if err != nil {
		return "a little"
	}
	return span(time.Duration(n) * time.Second)
}

// Fault is what is wrong at one place of a request, such as body.name.
type Fault struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

func (p *Problem) Error() string {
	said := p.Detail
	if said == "" {
		said = p.Title
	}
	for _, f := range p.Errors {
		said += "; " + f.Message
	}
	return said
}

// Heading is what the problem is called on a page.
func (p *Problem) Heading() string {
	if p.Title != "" {
		return p.Title
	}
	return http.StatusText(p.Status)
}

// At is what is wrong at a place; "" = nothing.
func (p *Problem) At(location string) string {
	if p == nil {
		return ""
	}
	var found []string
	for _, f := range p.Errors {
		if f.Location == location {
			found = append(found, f.Message)
		}
	}
	return strings.Join(found, "; ")
}

// get asks the API for what path (below /api/v1) shows, with the rights and the
// address of who made r. Errors are *Problem where the API refused.
func get[T any](c *console, r *http.Request, path ...string) (T, error) {
	var out T
	err := c.call(r, http.MethodGet, join(path), nil, &out)
	return out, err
}

// join makes a path of segments, each escaped; the last may end with a query.
func join(segments []string) string {
	last := len(segments) - 1
	for i, s := range segments {
		rest := ""
		if i == last {
			if at := strings.IndexByte(s, '?'); at >= 0 {
				s, rest = s[:at], s[at:]
			}
		}
		segments[i] = url.PathEscape(s) + rest
	}
	return "/" + strings.Join(segments, "/")
}

// call makes a request of the API inside the process. in nil = no body, out nil =
// the answer does not matter.
func (c *console) call(r *http.Request, method, path string, in, out any) error {
	return c.callWith(r, method, path, nil, in, out)
}

// callWith is call with further header fields.
func (c *console) callWith(r *http.Request, method, path string, header http.Header, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	req, err := request(r, method, path, &body)
	if err != nil {
		return err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	if err := c.ask(answer, req); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.status >= 400 {
		return refusal(req, answer.status, answer.header, answer.body.Bytes())
	}
	if out == nil || answer.body.Len() == 0 {
		return nil
	}
	if err := json.Unmarshal(answer.body.Bytes(), out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// errBrokeOff is the error of an answer that the API did not end.
var errBrokeOff = errors.New("the answer broke off")

// ask hands a request to the API's handler.
func (c *console) ask(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = errBrokeOff
		default:
			panic(p)
		}
	}()
	c.API.ServeHTTP(w, r)
	return nil
}

// request is one of the API, by who made r and from where.
func request(r *http.Request, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(r.Context(), method, "/api/v1"+path, body) //nolint:gosec // G704: it goes to a handler of this process
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.RemoteAddr = r.RemoteAddr // for the audit log
	req.Host = r.Host
	req.Header.Set("User-Agent", r.UserAgent()) // for the list of sessions
	return req, nil
}

// refusal reads the problem that the API answered.
func refusal(req *http.Request, status int, header http.Header, body []byte) error {
	p := &Problem{}
	if err := json.Unmarshal(body, p); err != nil {
		return fmt.Errorf("%s %s: status %d: %w", req.Method, req.URL.Path, status, err)
	}
	p.Status, p.After = status, header.Get("Retry-After")
	return p
}

// answer takes what the API's handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
func (a *answer) WriteHeader(status int)      { a.status = status }

// asProblem reports whether the API refused, and how.
func asProblem(err error, p **Problem) bool { return errors.As(err, p) }
