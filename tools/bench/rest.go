package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// rest calls the API of an own host. close must be called.
type rest struct {
	base, key string
	http      *http.Client
}

func newREST(base, key string) *rest {
	return &rest{base + "/api/v1", key, &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: provisioners},
	}}
}

func (r *rest) close() { r.http.CloseIdleConnections() }

func (r *rest) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	answer, err := r.ask(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	if err := json.NewDecoder(answer).Decode(out); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// get asks for what is no JSON, or too much of it. The caller closes the answer.
func (r *rest) get(ctx context.Context, path string) (io.ReadCloser, error) {
	return r.ask(ctx, http.MethodGet, path, nil)
}

// ask makes a request; the caller closes the answer.
func (r *rest) ask(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	req, err := r.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call host: %w", err)
	}
	if resp.StatusCode >= 300 {
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("call host: %s %s answered %s: %s", method, path, resp.Status, b)
	}
	return resp.Body, nil
}

func (r *rest) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// newAgent makes an agent known to the host, and returns its key if it has one.
func (r *rest) newAgent(ctx context.Context, name, kind string, config map[string]any) (key string, err error) {
	var made struct{ Key string }
	err = r.call(ctx, http.MethodPost, "/agents", map[string]any{"name": name, "kind": kind, "config": config}, &made)
	return made.Key, err
}

// provisioners make channels at the same time, which share commits.
const provisioners = 8

// provision makes n channels, answered by the echo agent, and returns their
// tokens. Their names are those of channelName.
func provision(ctx context.Context, host *child, prefix string, n int) ([]string, error) {
	return provisionAs(ctx, host, prefix, n, map[string]any{"agent": "echo"})
}

// provisionAs is provision with settings of the channels.
func provisionAs(ctx context.Context, host *child, prefix string, n int, settings map[string]any) ([]string, error) {
	r, err := host.rest()
	if err != nil {
		return nil, err
	}
	defer r.close()
	tokens := make([]string, n)
	err = each(n, provisioners, func(i int) error {
		var made struct {
			Token string `json:"token"`
		}
		in := map[string]any{"name": channelName(prefix, i), "kind": "bridge", "enabled": true}
		maps.Copy(in, settings)
		if err := r.call(ctx, http.MethodPost, "/channels", in, &made); err != nil {
			return fmt.Errorf("make channel: %w", err)
		}
		tokens[i] = made.Token
		return nil
	})
	return tokens, err
}

func channelName(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }

// entry is a message of history, as far as it is compared.
type entry struct {
	ID        string          `json:"id"`
	Direction string          `json:"direction"`
	Text      string          `json:"text"`
	ReplyCtx  json.RawMessage `json:"reply_ctx"`
	ReplyTo   string          `json:"reply_to"`
	State     string          `json:"state"`
	Handle    string          `json:"preview_handle"`
}

// newest is the newest inbound message of a channel; false = there is none.
func (r *rest) newest(ctx context.Context, channel string) (e entry, ok bool, err error) {
	var page struct {
		Messages []entry `json:"messages"`
	}
	if err := r.call(ctx, http.MethodGet, "/channels/"+channel+"/messages?limit=1&direction=in", nil, &page); err != nil || len(page.Messages) == 0 {
		return e, false, err
	}
	return page.Messages[0], true, nil
}

// history calls fn with every message of a channel, newest first.
func (r *rest) history(ctx context.Context, channel string, fn func(entry)) error {
	cursor := ""
	for {
		var page struct {
			Messages   []entry `json:"messages"`
			NextCursor string  `json:"next_cursor"`
		}
		path := "/channels/" + channel + "/messages?limit=500&cursor=" + url.QueryEscape(cursor)
		if err := r.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return err
		}
		for _, e := range page.Messages {
			fn(e)
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}
