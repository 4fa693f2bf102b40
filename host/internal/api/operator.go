package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// Operator is who operates the host.
type Operator struct {
	Name      string `json:"name"`
	CreatedAt Time   `json:"created_at"`
	ChangedAt Time   `json:"changed_at" doc:"When the password was last set"`
}

// Session is a place where the operator is logged in.
type Session struct {
	ID         string `json:"id"`
	Current    bool   `json:"current" doc:"Whether this request was made by it"`
	CreatedAt  Time   `json:"created_at"`
	LastUsedAt Time   `json:"last_used_at"`
	ExpiresAt  Time   `json:"expires_at" doc:"At the latest; 12 hours after it was last used in any case"`
	Remote     string `json:"remote" doc:"Address of who logged in"`
	UserAgent  string `json:"user_agent"`
}

// OpenedSession is a session that began.
type OpenedSession struct {
	Session
	Secret string `json:"secret" doc:"What the cookie of a browser holds; shown once. It is no key"`
}

// SetupLink is where name and password are set.
type SetupLink struct {
	URL       string `json:"url" doc:"Opens once"`
	ExpiresAt Time   `json:"expires_at"`
}

type sessionList struct {
	Sessions []Session `json:"sessions"`
}

type setupBody struct {
	Code     string `json:"code" maxLength:"64" doc:"Of the link that serve printed"`
	Name     string `json:"name" maxLength:"64" doc:"Of the operator"`
	Password string `json:"password" maxLength:"1024" doc:"At least 12 characters"`
}

type loginBody struct {
	Name     string `json:"name" maxLength:"64"`
	Password string `json:"password" maxLength:"1024"`
}

type passwordBody struct {
	Present  string `json:"present" maxLength:"1024" doc:"The present password"`
	Password string `json:"password" maxLength:"1024" doc:"The new one, of at least 12 characters"`
}

type operatorBody struct {
	Name string `json:"name" maxLength:"64"`
}

func (s *server) operator() {
	if s.Account == nil {
		return
	}
	huma.Register(s.api, open(operation("POST", "/operator/setup", "set-up-operator", "Set the operator's name and password by the code of a link, and log in; all other sessions end", 201, 422, 429)), s.setUp)
	huma.Register(s.api, open(operation("POST", "/sessions", "open-session", "Log in; whatever is wrong, the answer is the same", 201, 422, 429, 503)), s.logIn)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("GET", "/operator", "get-operator", "Who operates the host", 200, 404)), s.getOperator)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("PATCH", "/operator", "rename-operator", "Change the operator's name", 200, 404, 422)), s.renameOperator)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("PUT", "/operator/password", "set-password", "Change the operator's password; all other sessions end", 204, 404, 422, 429, 503)), s.setPassword)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("POST", "/operator/link", "link-operator", "Make a link at which name and password are set anew, for one who forgot them", 201)), s.linkOperator)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("GET", "/sessions", "list-sessions", "Where the operator is logged in, newest first", 200)), s.listSessions)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("DELETE", "/sessions", "close-sessions", "Log out everywhere", 204)), s.closeSessions)
	huma.Register(s.api, opens(auth.ScopeAdmin, wholeHost, operation("DELETE", "/sessions/{session}", "close-session", "Log out; current is the session of the request", 204, 404)), s.closeSession)
}

func (s *server) setUp(ctx context.Context, in *body[setupBody]) (*body[OpenedSession], error) {
	remote := auth.OriginOf(ctx).Remote
	if wait := s.Failures.Allow(remote, netguard.Links); wait > 0 {
		return nil, retryAfter(huma.Error429TooManyRequests(netguard.TooManyFailures), wait)
	}
	made, err := s.Account.SetUp(ctx, in.Body.Code, in.Body.Name, in.Body.Password)
	if errors.Is(err, auth.ErrInvalid) {
		s.Failures.Failed(remote, netguard.Links, in.Body.Code)
		return nil, field(http.StatusUnauthorized, "body.code", "opens nothing: it was used, has expired, or a newer one was made (pontoon operator link makes another)", "")
	}
	if err != nil {
		return nil, s.accountFault(err)
	}
	s.Log.Info("operator set up", "remote", remote)
	return opened(made), nil
}

func (s *server) logIn(ctx context.Context, in *body[loginBody]) (*body[OpenedSession], error) {
	made, err := s.Account.LogIn(ctx, in.Body.Name, in.Body.Password)
	if errors.Is(err, auth.ErrInvalid) {
		return nil, huma.Error401Unauthorized("name or password is wrong, or nobody was set up")
	}
	if err != nil {
		return nil, s.accountFault(err)
	}
	return opened(made), nil
}

func opened(made auth.Opened) *body[OpenedSession] {
	return &body[OpenedSession]{OpenedSession{showSession(made.Session, made.ID), made.Secret}}
}

// accountFault is the problem of what an account refuses.
func (s *server) accountFault(err error) error {
	var bad *auth.FieldError
	var wait *auth.WaitError
	switch {
	case errors.As(err, &bad):
		return field(http.StatusUnprocessableEntity, "body."+bad.Field, bad.Message, "")
	case errors.As(err, &wait):
		return retryAfter(huma.Error429TooManyRequests(err.Error()), wait.Wait)
	case errors.Is(err, auth.ErrBusy):
		return retryAfter(huma.Error503ServiceUnavailable(err.Error()), time.Second)
	}
	return s.fault(err, "operator")
}

func retryAfter(err error, wait time.Duration) error {
	return huma.ErrorWithHeaders(err, http.Header{"Retry-After": {netguard.Seconds(wait)}})
}

func (s *server) getOperator(ctx context.Context, _ *struct{}) (*body[Operator], error) {
	o, err := s.Store.Operator(ctx)
	if err != nil {
		return nil, s.fault(err, "operator")
	}
	return &body[Operator]{Operator{o.Name, timeOf(o.CreatedAt), timeOf(o.ChangedAt)}}, nil
}

func (s *server) renameOperator(ctx context.Context, in *body[operatorBody]) (*body[Operator], error) {
	if err := s.Account.Rename(ctx, in.Body.Name); err != nil {
		return nil, s.accountFault(err)
	}
	return s.getOperator(ctx, nil)
}

func (s *server) setPassword(ctx context.Context, in *body[passwordBody]) (*struct{}, error) {
	if err := s.Account.SetPassword(ctx, holderOf(ctx), in.Body.Present, in.Body.Password); err != nil {
		return nil, s.accountFault(err)
	}
	return nil, nil
}

func (s *server) linkOperator(ctx context.Context, _ *struct{}) (*body[SetupLink], error) {
	url, ends, err := s.Account.NewLink(ctx)
	if err != nil {
		return nil, s.fault(err, "link")
	}
	return &body[SetupLink]{SetupLink{url, timeOf(ends)}}, nil
}

func (s *server) listSessions(ctx context.Context, _ *struct{}) (*body[sessionList], error) {
	all, err := s.Store.Sessions(ctx)
	if err != nil {
		return nil, s.fault(err, "sessions")
	}
	out := sessionList{Sessions: []Session{}}
	for _, one := range all {
		if auth.LiveSession(one, s.Now()) {
			out.Sessions = append(out.Sessions, showSession(one, holderOf(ctx).Session))
		}
	}
	return &body[sessionList]{out}, nil
}

func showSession(r ledger.Session, current int64) Session {
	return Session{ledger.SessionRef(r.ID), r.ID == current, timeOf(r.CreatedAt), timeOf(r.LastUsedAt), timeOf(r.ExpiresAt), r.Remote, r.UserAgent}
}

func (s *server) closeSessions(ctx context.Context, _ *struct{}) (*struct{}, error) {
	if _, err := s.Store.DeleteSessions(ctx, s.by(ctx, "session.close.all", "operator", nil)); err != nil {
		return nil, s.fault(err, "sessions")
	}
	return nil, nil
}

func (s *server) closeSession(ctx context.Context, in *struct {
	Session string `path:"session" maxLength:"20" doc:"The session's id, or current"`
}) (*struct{}, error) {
	id := holderOf(ctx).Session
	if in.Session != "current" {
		var err error
		if id, err = strconv.ParseInt(in.Session, 10, 64); err != nil {
			id = 0 // is none
		}
	}
	if err := s.Store.DeleteSession(ctx, id, s.by(ctx, "session.close", ledger.SessionRef(id), nil)); err != nil {
		return nil, s.fault(err, "session "+strconv.Quote(in.Session))
	}
	return nil, nil
}
