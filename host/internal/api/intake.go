package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// maxOpenBody is of how many bytes the body of an operation may be that anybody may
// call. A name and a password of 1024 characters fit, however they are escaped.
const maxOpenBody = 16 << 10

// take is the way of all bodies to operations: within the memory that is for them,
// and bounded before they are decoded. It comes behind authenticate.
func (s *server) take(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	if op.RequestBody == nil {
		next(ctx)
		return
	}
	r, _ := humago.Unwrap(ctx)
	limits := intake.Limits{Bytes: netguard.DefaultMaxBody, Values: intake.MaxValues}
	if scope, _ := op.Metadata[scopeKey].(auth.Scope); scope == scopeOpen {
		limits.Bytes = maxOpenBody
	}
	body, err := s.Bodies.Read(r, limits)
	if err != nil {
		s.refuseBody(ctx, err)
		return
	}
	defer body.Close()
	next(&taken{ctx, bytes.NewReader(body.JSON)})
}

func (s *server) refuseBody(ctx huma.Context, err error) {
	var refused *intake.Refusal
	if !errors.As(err, &refused) { // the client has gone
		refused = &intake.Refusal{Status: http.StatusBadRequest, Message: "broke off before its end"}
	}
	status := refused.Status
	if status == http.StatusUnprocessableEntity { // as all JSON that can't be decoded
		status = http.StatusBadRequest
	}
	if refused.Retry > 0 {
		ctx.SetHeader("Retry-After", netguard.Seconds(refused.Retry))
	}
	_ = huma.WriteErr(s.api, ctx, status, refused.Error()) // the client is told or gone
}

type humaContext huma.Context

// taken is the context of an operation whose body was read.
type taken struct {
	humaContext
	body io.Reader
}

// Unwrap is for who wants the request below.
func (c *taken) Unwrap() huma.Context { return c.humaContext }

// BodyReader implements huma.Context.
func (c *taken) BodyReader() io.Reader { return c.body }

// SetReadDeadline implements huma.Context: nothing is read any more, and a deadline
// would end the request.
func (c *taken) SetReadDeadline(time.Time) error { return nil }
