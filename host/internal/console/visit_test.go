package console

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// visitor looks at the console's pages as the operator does whose browser runs no
// scripts. Their API is that of a whole host.
type visitor struct {
	*hosttest.Host
	pages http.Handler

	path   string // of the page that is shown
	status int
	root   *html.Node
}

// webhooks is the kind of agents with the most fields, which nobody asks here.
func webhooks(s *hosttest.Setup) {
	s.Kinds = map[string]agent.Kind{"webhook": {
		Secrets: []string{"secret", "secrets", "headers"}, Fields: agent.WebhookFields, Fill: agent.FillWebhook, Check: agent.CheckWebhook,
		Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil },
	}}
}

func visit(t *testing.T) *visitor {
	t.Helper()
	h := hosttest.Start(t, hosttest.Whole, webhooks)
	client := &http.Client{}
	t.Cleanup(client.CloseIdleConnections)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", h.Addr
		r.Header.Set("Authorization", "Bearer "+h.Key)
		answer, err := client.Do(r)
		if err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		if _, err := io.Copy(w, answer.Body); err != nil {
			t.Error(err)
		}
	})
	return &visitor{Host: h, pages: New(Options{
		API: api, Log: slog.New(slog.DiscardHandler), URL: h.URL(), Version: "test", Now: time.Now,
		Setup: func(context.Context, string, string) (bool, bool, error) { return false, true, nil },
	})}
}

// open goes to a page.
func (v *visitor) open(path string) {
	v.T.Helper()
	v.do(httptest.NewRequestWithContext(v.T.Context(), http.MethodGet, Path+path, nil))
}

func (v *visitor) do(r *http.Request) {
	v.T.Helper()
	w := httptest.NewRecorder()
	v.pages.ServeHTTP(w, r.WithContext(auth.WithHolder(r.Context(), auth.Operator())))
	if to := w.Header().Get("Location"); w.Code == http.StatusSeeOther {
		next := httptest.NewRequestWithContext(v.T.Context(), http.MethodGet, to, nil)
		for _, c := range w.Result().Cookies() {
			next.AddCookie(c)
		}
		v.do(next)
		return
	}
	root, err := html.Parse(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		v.T.Fatal(err)
	}
	v.path, v.status, v.root = r.URL.Path, w.Code, root
}

// send sends the page's form whose action ends so, with fields typed over. A field with
// the value "\x00" is one whose box is not ticked.
func (v *visitor) send(action string, typed map[string]string) {
	v.T.Helper()
	form := v.find(func(n *html.Node) bool {
		return n.Data == "form" && strings.HasSuffix(attr(n, "action"), action)
	})
	if form == nil {
		v.T.Fatalf("%s has no form %s", v.path, action)
	}
	sent := fieldsOf(form)
	for name, text := range typed {
		if sent.Set(name, text); text == "\x00" {
			sent.Del(name)
		}
	}
	r := httptest.NewRequestWithContext(v.T.Context(), http.MethodPost, attr(form, "action"), strings.NewReader(sent.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	v.do(r)
}

// fieldsOf is what a browser would send of a form that nobody touched.
func fieldsOf(form *html.Node) url.Values {
	sent := url.Values{}
	for n := range form.Descendants() {
		name := attr(n, "name")
		switch {
		case name == "":
		case n.Data == "textarea":
			sent.Add(name, strings.TrimPrefix(textOf(n), "\n"))
		case n.Data == "select":
			for o := range n.Descendants() {
				if o.Data == "option" && (!sent.Has(name) || hasAttr(o, "selected")) {
					sent.Set(name, attr(o, "value"))
				}
			}
		case n.Data == "input" && (attr(n, "type") != "checkbox" && attr(n, "type") != "radio" || hasAttr(n, "checked")):
			sent.Add(name, attr(n, "value"))
		}
	}
	return sent
}

func (v *visitor) find(is func(*html.Node) bool) *html.Node {
	for n := range v.root.Descendants() {
		if n.Type == html.ElementNode && is(n) {
			return n
		}
	}
	return nil
}

// byID is the text of an element, "" without one.
func (v *visitor) byID(id string) string {
	if n := v.find(func(n *html.Node) bool { return attr(n, "id") == id }); n != nil {
		return strings.Join(strings.Fields(textOf(n)), " ")
	}
	return ""
}

// text is what the page says.
func (v *visitor) text() string {
	return strings.Join(strings.Fields(textOf(v.find(func(n *html.Node) bool { return n.Data == "main" }))), " ")
}

// words is text with a space between what stands in different elements.
func (v *visitor) words() string {
	var b strings.Builder
	for n := range v.find(func(n *html.Node) bool { return n.Data == "main" }).Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// source is the page as it was sent.
func (v *visitor) source() string {
	var b strings.Builder
	if err := html.Render(&b, v.root); err != nil {
		v.T.Fatal(err)
	}
	return b.String()
}

func textOf(n *html.Node) string {
	var b strings.Builder
	if n != nil {
		for d := range n.Descendants() {
			if d.Type == html.TextNode {
				b.WriteString(d.Data)
			}
		}
	}
	return b.String()
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}
