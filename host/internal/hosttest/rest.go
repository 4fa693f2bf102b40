package hosttest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Reply is what the API answered.
type Reply struct {
	Status int
	Header http.Header
	Body   string // of an event stream its beginning
}

// Request calls the REST API with a key; header has pairs of names and values. A
// request that fails has status 0 and its error as the body, so that any goroutine may
// make it.
func (h *Host) Request(key, method, path, body string, header ...string) Reply {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.T.Context()), await.Limit) // also in a Cleanup
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, h.URL()+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return Reply{Body: err.Error()}
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(r)
}

func do(r *http.Request) Reply {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return Reply{Body: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	from := io.Reader(resp.Body)
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		from = io.LimitReader(from, 1)
	}
	b, err := io.ReadAll(from)
	if err != nil {
		return Reply{Body: err.Error()}
	}
	return Reply{resp.StatusCode, resp.Header, string(b)}
}

// Get reads what is at a url without a key, such as a file; see Request.
func (h *Host) Get(url string) Reply {
	r, err := http.NewRequestWithContext(h.T.Context(), http.MethodGet, url, nil)
	if err != nil {
		return Reply{Body: err.Error()}
	}
	return do(r)
}

// URL is where the host is reached.
func (h *Host) URL() string { return "http://" + h.Addr }

// Ask is Request with the operator's key.
func (h *Host) Ask(method, path, body string) (status int, answer string) {
	return h.As(h.Key, method, path, body)
}

// As is Ask with another key.
func (h *Host) As(key, method, path, body string) (status int, answer string) {
	r := h.Request(key, method, path, body)
	return r.Status, r.Body
}

// Operator calls the REST API and wants the status.
func (h *Host) Operator(method, path, body string, status int) {
	h.T.Helper()
	if got, answer := h.Ask(method, path, body); got != status {
		h.T.Fatalf("%s %s: status %d, want %d: %.300s", method, path, got, status, answer)
	}
}

// Must is Request with the operator's key for what has to succeed; v nil = the answer
// does not matter.
func (h *Host) Must(v any, method, path, body string, header ...string) Reply {
	h.T.Helper()
	r := h.Request(h.Key, method, path, body, header...)
	if r.Status/100 != 2 {
		h.T.Fatalf("%s %s: %d %s", method, path, r.Status, r.Body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(r.Body), v); err != nil {
			h.T.Fatalf("%s %s: %v in %s", method, path, err, r.Body)
		}
	}
	return r
}

// Call is Operator for an answer that is read; 204 has none.
func Call[T any](h *Host, method, path, body string, status int) (v T) {
	h.T.Helper()
	got, answer := h.Ask(method, path, body)
	if got != status {
		h.T.Fatalf("%s %s: status %d, want %d: %.500s", method, path, got, status, answer)
	}
	if status != http.StatusNoContent {
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			h.T.Fatalf("%s %s: %v: %.500s", method, path, err, answer)
		}
	}
	return v
}

// Make makes a channel as an operator does and returns its token; extra begins with a
// comma and are further fields.
func (h *Host) Make(name, extra string) (token string) {
	h.T.Helper()
	var made struct{ Token string }
	h.Must(&made, "POST", "/channels", `{"name":"`+name+`"`+extra+`}`)
	return made.Token
}

// NewKey makes a key; extra are its fields beside the name.
func (h *Host) NewKey(name, extra string) (key string) {
	h.T.Helper()
	var made struct{ Key string }
	h.Must(&made, "POST", "/keys", `{"name":"`+name+`",`+extra+`}`)
	return made.Key
}

// Message is a message as the API shows it, as far as tests look at it.
type Message struct {
	ID           string
	Direction    string
	Conversation string `json:"conversation_id"`
	Author       string
	Text         string
	State        string
	Reason       string
	ReplyTo      string `json:"reply_to"`
}

// Messages walks a channel's messages, newest first.
func (h *Host) Messages(channel string) []Message {
	h.T.Helper()
	var all []Message
	for cursor := ""; ; {
		var page struct {
			Messages []Message
			Next     string `json:"next_cursor"`
		}
		h.Must(&page, "GET", "/channels/"+channel+"/messages?limit=500&cursor="+cursor, "")
		all = append(all, page.Messages...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// AgentAway reports whether a channel's health says that its agent is away.
func (h *Host) AgentAway(channel string) bool {
	h.T.Helper()
	health := Call[struct {
		Health struct {
			Away  bool       `json:"agent_away"`
			Since *time.Time `json:"agent_away_since"`
		}
	}](h, "GET", "/channels/"+channel, "", http.StatusOK).Health
	if !health.Away && health.Since != nil || health.Since != nil && time.Since(*health.Since) > time.Hour {
		h.T.Errorf("away is %v, since %v", health.Away, health.Since)
	}
	return health.Away
}
