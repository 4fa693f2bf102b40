package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// caller is a client that asks one question after the other.
type caller struct {
	tally
	stamped
	// ask asks, and returns the whole answer, good until the next call.
	ask func(question []byte) (answer []byte, err error)
	// answers is how often an answer says what was asked for; 1 = all is well.
	answers func(answer, id []byte) int
	expire  func(time.Time)
}

var _ client = (*caller)(nil)

// newCaller makes one that asks by text, which has the id of its first question in it.
func newCaller(text []byte, id string) *caller {
	return &caller{tally: tally{last: make([]int, 1)}, stamped: stampedWith(text, id), expire: func(time.Time) {}}
}

// refused is the error of a question that was refused; others can be asked.
type refused struct{ why string }

func (r *refused) Error() string { return r.why }

// seen implements client.
func (c *caller) seen() *tally { return &c.tally }

// until implements client.
func (c *caller) until(at time.Time) { c.expire(at) }

// run implements client.
func (c *caller) run(st *stage, quota int) error {
	id := append(bytes.Clone(c.prefix), make([]byte, seqDigits)...)
	for !st.over() && (quota == 0 || c.sent < quota) {
		seq := c.sent
		putDigits(id[len(c.prefix):], seq)
		began := now()
		c.sent++
		answer, err := c.ask(c.of(seq))
		if r, ok := err.(*refused); ok { //nolint:errorlint // made by ask itself
			if c.refused++; c.refusal == "" {
				c.refusal = r.why
			}
			continue
		}
		if err != nil {
			return err
		}
		n := c.answers(answer, id)
		for range n {
			c.note(seq)
		}
		if n == 0 && c.refusal == "" {
			c.refusal = "an answer to something else: " + string(bytes.ToValidUTF8(answer[:min(len(answer), 200)], nil))
		}
		if n > 0 && st.measuring() {
			c.counted++
			c.latency.add(now() - began)
		}
	}
	return nil
}

// wired makes the caller post over a connection of its own, without what Go's client
// does beside: the generator must not take the processor from who is measured.
func (c *caller) wired(ctx context.Context, url, path, key string, body []byte) (end func(), err error) {
	address := strings.TrimPrefix(url, "http://")
	dialer := net.Dialer{Control: loopbackOnly, Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	head := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		path, address, key, len(body))
	first := string(c.prefix) + strings.Repeat("0", seqDigits)
	c.stamped = stampedWith(append(head, body...), first)
	c.expire = func(at time.Time) { _ = conn.SetDeadline(at) }
	r := bufio.NewReaderSize(conn, 8<<10)
	var buf bytes.Buffer
	c.ask = func(question []byte) ([]byte, error) {
		if _, err := conn.Write(question); err != nil {
			return nil, err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		return whole(resp, &buf)
	}
	return func() { _ = conn.Close() }, nil
}

// whole reads an answer to its end, into buf. The caller closes it.
func whole(resp *http.Response, buf *bytes.Buffer) ([]byte, error) {
	buf.Reset()
	if _, err := io.Copy(buf, resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, &refused{fmt.Sprintf("answered %s: %.200s", resp.Status, buf.Bytes())}
	}
	return buf.Bytes(), nil
}

// padded is the text of a question: its id, and what is needed to have so many bytes.
func padded(id string, size int) string {
	spare := max(0, size-len(id)-1)
	return id + " " + strings.Repeat(padding, spare/len(padding)+1)[:spare]
}
