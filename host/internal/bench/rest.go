package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	if err != nil {
		return fmt.Errorf("call host: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("call host: %s %s answered %s: %s", method, path, resp.Status, b)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// provisioners make channels at the same time, which share commits.
const provisioners = 8

// provision makes n channels, answered by the echo agent, and returns their
// tokens. Their names are those of channelName.
func provision(ctx context.Context, host *child, prefix string, n int) ([]string, error) {
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
		in := map[string]any{"name": channelName(prefix, i), "kind": "bridge", "enabled": true, "agent": "echo"}
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
