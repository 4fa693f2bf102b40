package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// End is a front end as the API knows it. cmd makes it and registers it there; the
// API knows nothing of a front end but what is here.
type End interface {
	// Kind describes the front end's channel. It is always the same.
	Kind() Kind
	// Routes registers what clients call. It is called once, before any client.
	Routes(Door)
	// Changed is told of every change of the channel's row, once it is stored. Of two
	// changes at once the older one may come last: row.Version tells.
	Changed(ctx context.Context, row ledger.Channel) error
	// Revoked is told that the API key with this id has ended.
	Revoked(key int64)
}

// Kind is the kind of a front end's channel, of which the host makes one.
type Kind struct {
	Name  string
	About string   // a sentence for operators
	Fixed []string // fields of the channel, as REST calls them, that can't be changed
}

// Fixed names what no front end's channel has a choice of, and more.
func Fixed(more ...string) []string {
	return append([]string{"name", "queue", "accept_capabilities", "profile"}, more...)
}

// Door is where the API serves front ends' routes.
type Door interface {
	// Operation adds a route below /api/v1 that API keys of a scope open, and describes
	// it in the OpenAPI document. Whose key it is, auth.HolderOf tells of the request's
	// context.
	Operation(Operation, Handler)
	// Handle adds a route by its pattern. Whom it lets in is for the front end to decide.
	Handle(pattern string, h Handler)
}

// Handler answers a request, or returns why it does not: the API makes an RFC 9457
// problem of a *Refusal and of storage's errors, and "internal error" of all others.
// After an error nothing may have been written.
type Handler func(http.ResponseWriter, *http.Request) error

// Operation describes a route of the REST API.
type Operation struct {
	Method, Path, ID, Summary string
	Scope                     auth.Scope
	Query                     []*huma.Param
	Takes                     string // media type of the body; "" = there is none
	Gives                     string // media type of the answer
	Answer                    any    // a value of the type whose JSON is the answer; nil = Gives says all
	Errors                    []int  // statuses of problems, besides those of every operation
}

// Refusal is why a request was not served, for its client to read.
type Refusal struct {
	Status  int
	At      string        // where in the request, such as "body.messages[0]"; "" = nowhere in particular
	Code    string        // for programs; "" = the status says enough
	Message string        // found what, expected what
	Retry   time.Duration // after which it makes sense to ask again; 0 = not said
}

func (r *Refusal) Error() string {
	if r.At == "" {
		return r.Message
	}
	return r.At + ": " + r.Message
}

// ReadBody reads a request's body within limits; the caller closes it. The error is a
// *Refusal, or that of the request's context.
func ReadBody(bodies *intake.Bodies, r *http.Request, l intake.Limits) (*intake.Body, error) {
	body, err := bodies.Read(r, l)
	return body, NoBody(err)
}

// NoBody makes a *Refusal of intake's.
func NoBody(err error) error {
	var refused *intake.Refusal
	if errors.As(err, &refused) {
		return &Refusal{Status: refused.Status, At: "body", Message: refused.Message, Retry: refused.Retry}
	}
	return err
}

// Answer answers a request with v as JSON.
func Answer(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // the client is told or gone
	return nil
}

// Stream answers a request with a JSON object whose last field is a list of messages,
// while the page is read, and closes it. open is the JSON before the first message,
// show makes what is shown of one, tail, a struct, what follows the list.
func Stream(w http.ResponseWriter, r *http.Request, page *paging.Page, log *slog.Logger, open string, show func(*ledger.Entry) []any, tail any) {
	defer page.Close()
	w.Header().Set("Content-Type", "application/json")
	begin, done := paging.Pacer(w)
	defer done()
	list := paging.NewList(w, open)
	var err error
	for again := time.Now().Add(patience); ; { // it is in the order of what was said: it can't end early
		err = page.Each(r.Context(), begin, func(e *ledger.Entry) error {
			for _, v := range show(e) {
				if err := list.Add(v); err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, paging.ErrFull) || time.Now().After(again) {
			break
		}
	}
	if err == nil {
		err = list.End(tail)
	}
	if err != nil {
		log.Debug("page not written to its end", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler) // so that a part is not taken for the whole
	}
}

// patience is how long an answer that has begun waits for room to read on.
const patience = time.Minute

// BodyRefusal is the refusal of a body that could not be read to its end.
func BodyRefusal(err error) *Refusal {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &Refusal{Status: http.StatusRequestEntityTooLarge, At: "body", Message: "found too much, expected at most " + strconv.FormatInt(large.Limit, 10) + " bytes"}
	}
	return &Refusal{Status: http.StatusBadRequest, At: "body", Message: intake.Unreadable(err)}
}
