package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

// clientOptions are the flags of every command that talks to a host.
type clientOptions struct {
	data, url, key string
	json           bool
	masterKeyFile  string // "" = the data directory's
}

// maxAnswer bounds what a command reads of an answer.
const maxAnswer = 64 << 20

// client calls a running host.
type client struct {
	base, key string
	from      string // where the key is from, or why there is none
}

func (o *clientOptions) client() (*client, error) {
	u, err := url.Parse(o.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usageError{fmt.Errorf("--url: found %q, expected http(s)://HOST[:PORT]", o.url)}
	}
	c := &client{base: strings.TrimSuffix(o.url, "/")}
	return c, o.findKey(c)
}

// findKey looks for the key where it may be. None is no error yet: a host that is not
// there must be named first.
func (o *clientOptions) findKey(c *client) (err error) {
	if c.key, c.from = o.key, "the key of --key was used"; c.key != "" {
		return nil
	}
	if c.key, c.from = os.Getenv("PONTOON_KEY"), "the key of PONTOON_KEY was used"; c.key != "" {
		return nil
	}
	file := filepath.Join(o.data, auth.KeyFile)
	c.from = "the key of " + file + " was used"
	if c.key, err = auth.ReadKey(o.data); errors.Is(err, os.ErrNotExist) {
		c.from = "none was given: " + file + " is not there; say with --data where the host's data directory is, or give a key by --key or PONTOON_KEY"
		return nil
	}
	return err
}

// do sends a request and returns the answer if it is a success. Its body must
// be closed.
func (c *client) do(ctx context.Context, method, path string, in any, header http.Header) (*http.Response, error) {
	if in == nil {
		return c.request(ctx, method, path, nil, header)
	}
	b, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	typed := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(typed, header)
	return c.request(ctx, method, path, bytes.NewReader(b), typed)
}

// request is do with a body as it is.
func (c *client) request(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var refused *net.OpError
		if errors.As(err, &refused) && refused.Op == "dial" {
			return nil, fmt.Errorf("no host at %s (start one: pontoon serve)", c.base)
		}
		var call *url.Error
		if errors.As(err, &call) {
			err = call.Err // without the path, which says nothing to who typed a command
		}
		return nil, fmt.Errorf("call host at %s: %w", c.base, err)
	}
	if resp.StatusCode >= 300 {
		defer func() { _ = resp.Body.Close() }()
		err := problemOf(resp)
		if resp.StatusCode == http.StatusUnauthorized {
			err = fmt.Errorf("%w (%s)", err, c.from)
		}
		return nil, err
	}
	return resp, nil
}

// problemOf makes one line of an RFC 9457 problem.
func problemOf(resp *http.Response) error {
	var p struct {
		Detail string `json:"detail"`
		Errors []struct {
			Message  string `json:"message"`
			Location string `json:"location"`
			Value    any    `json:"value"`
		} `json:"errors"`
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if json.Unmarshal(b, &p) != nil || p.Detail == "" {
		return fmt.Errorf("host answered %s", resp.Status)
	}
	line := p.Detail
	for _, e := range p.Errors {
		if !strings.Contains(line, e.Message) {
			line += "; " + e.Location + ": " + e.Message
		}
		if e.Value != nil && e.Value != "" && !strings.Contains(e.Message, "found ") {
			if found, err := json.Marshal(e.Value); err == nil {
				line += ", found " + string(found)
			}
		}
	}
	return errors.New(line)
}

// call sends a request and returns the answer's JSON.
func (c *client) call(ctx context.Context, method, path string, in any) (json.RawMessage, error) {
	resp, err := c.do(ctx, method, path, in, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return readAnswer(resp.Body)
}

// readAnswer reads an answer's JSON.
func readAnswer(body io.Reader) (json.RawMessage, error) {
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return bytes.TrimSpace(b), nil
}

// all reads a list to its end. noun is the field that holds its entries.
func (c *client) all(ctx context.Context, path, noun string) (json.RawMessage, error) {
	entries := []json.RawMessage{}
	cursor := ""
	for {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		page, err := c.call(ctx, http.MethodGet, path+sep+"limit=500&cursor="+url.QueryEscape(cursor), nil)
		if err != nil {
			return nil, err
		}
		var fields map[string]json.RawMessage
		var part []json.RawMessage
		if err := json.Unmarshal(page, &fields); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		if err := json.Unmarshal(fields[noun], &part); err != nil {
			return nil, fmt.Errorf("read answer: %s: %w", noun, err)
		}
		entries = append(entries, part...)
		if fields["next_cursor"] == nil {
			return json.Marshal(map[string]any{noun: entries})
		}
		if err := json.Unmarshal(fields["next_cursor"], &cursor); err != nil {
			return nil, fmt.Errorf("read answer: next_cursor: %w", err)
		}
	}
}

// show prints the JSON as it is, or what human makes of it.
func show[T any](cmd *cobra.Command, o *clientOptions, raw json.RawMessage, human func(io.Writer, T)) error {
	w := cmd.OutOrStdout()
	if o.json {
		_, err := fmt.Fprintln(w, string(raw))
		return err
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	human(tab, v)
	return tab.Flush()
}

// clean keeps what users wrote from moving the cursor or forging a line.
func clean(s string) string {
	if strings.IndexFunc(s, obeyed) < 0 {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '\n', r == '\t':
			out.WriteByte(' ')
		case !obeyed(r):
			out.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
	}
	return out.String()
}

// obeyed reports the characters that a terminal obeys, or that change or hide what is
// shown: controls, ends of lines and paragraphs, directions, tags, and spaces of no width.
// Joiners stay: scripts and emoji need them.
func obeyed(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xad, r == 0x61c, r == 0x180e, r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e,
		r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}
