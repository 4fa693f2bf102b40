package irc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// errLost is the end of the connection during an answer.
var errLost = errors.New("the IRC connection was lost")

// wait is one answer under way: its lines are being written, or the server's
// word on them is awaited.
type wait struct {
	target string // folded
	token  string
	result chan error // one value: nil once the server has processed all lines
}

// send is Adapter.Send during a Run.
func (c *client) send(ctx context.Context, to sdk.Target, text string) (r sdk.Receipt, err error) {
	l := c.current()
	if l == nil {
		return r, sdk.Retry(retryOffline, errOffline)
	}
	target, prefix, err := l.route(to)
	if err != nil {
		return r, err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return r, nil
	}
	all := split(prefix+text, l.room(target))
	lines := capLines(all, c.set.MaxLines)
	if err := l.admit(len(lines)); err != nil {
		return r, err
	}
	if cut := len(all) - c.set.MaxLines; cut > 0 {
		r.Note = fmt.Sprintf("%d of %d lines were cut (max_lines)", cut, len(all))
	}
	return r, l.say(ctx, target, lines)
}

// route is where a message goes, and how the first line of an answer addresses the person.
func (l *link) route(to sdk.Target) (target, prefix string, err error) {
	at := replyCtx{Target: to.ConversationID}
	if len(to.ReplyCtx) > 0 && !bytes.Equal(to.ReplyCtx, []byte("null")) {
		if err := json.Unmarshal(to.ReplyCtx, &at); err != nil {
			return "", "", sdk.Refused(fmt.Errorf("reply_ctx: found something else; allowed: {\"target\",\"nick\"}: %w", err))
		}
	}
	l.mu.Lock()
	names, types, joined := l.names, l.types, l.joined[l.names.fold(at.Target)]
	l.mu.Unlock()
	if at.Nick != "" && !validNick(at.Nick) {
		return "", "", sdk.Refused(fmt.Errorf("reply_ctx.nick: found %q; allowed: an IRC nick", at.Nick))
	}
	switch {
	case validChannel(at.Target, types):
		if !joined {
			if !l.c.set.has(at.Target, names) {
				return "", "", sdk.Refused(fmt.Errorf("channel %q is not configured", at.Target))
			}
			return "", "", sdk.Retry(l.c.tune.rejoin, fmt.Errorf("not in channel %s at the moment", at.Target))
		}
		if at.Nick != "" && !to.Unsolicited {
			prefix = at.Nick + ": "
		}
		return at.Target, prefix, nil
	case validNick(at.Target):
		return at.Target, "", nil
	}
	return "", "", sdk.Refused(fmt.Errorf("target: found %q; allowed: an IRC channel or nick", at.Target))
}

// has says whether channel is one that the operator configured.
func (s *settings) has(channel string, names casemap) bool {
	for _, ch := range s.channels {
		if names.equal(ch.name, channel) {
			return true
		}
	}
	return false
}

// admit refuses n lines that would wait longer at the flood limit than the
// host waits for us; else they count as queued, and say counts them down.
func (l *link) admit(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ahead := float64(l.queued+n) - l.limit.Tokens()
	if took := time.Duration(ahead * float64(l.c.set.interval)); took > maxAnswer {
		return sdk.Retry(took-maxAnswer+time.Second, fmt.Errorf("%d lines wait for the flood limit", l.queued))
	}
	l.queued += n
	return nil
}

// say writes the lines at the pace of the flood limit and waits until the
// server has processed them. It has admitted lines, all of which it takes off the queue.
func (l *link) say(ctx context.Context, target string, lines []string) error {
	w := l.await(target)
	defer l.forget(w)
	for i, line := range lines {
		l.mu.Lock()
		l.queued--
		l.mu.Unlock()
		err := l.pace(ctx, w)
		if err == nil {
			err = l.write("NOTICE", target, line)
		}
		if err != nil {
			l.mu.Lock()
			l.queued -= len(lines) - i - 1
			l.mu.Unlock()
			return outcome(err, i, len(lines))
		}
	}
	l.limit.Reserve() // the ping counts at the server's flood limit, but need not wait for ours
	if err := l.write("PING", w.token); err != nil {
		return outcome(err, len(lines), len(lines))
	}
	timeout := time.NewTimer(l.c.tune.confirm)
	defer timeout.Stop()
	select {
	case err := <-w.result:
		return outcome(err, len(lines), len(lines))
	case <-timeout.C:
		return fmt.Errorf("the server did not confirm the answer within %s", l.c.tune.confirm)
	case <-l.done:
		return outcome(errLost, len(lines), len(lines))
	case <-ctx.Done():
		return outcome(ctx.Err(), len(lines), len(lines))
	}
}

// pace waits until one more line may be said.
func (l *link) pace(ctx context.Context, w *wait) error {
	r := l.limit.Reserve()
	timer := time.NewTimer(r.Delay())
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
		return nil
	case err = <-w.result:
	case <-l.done:
		err = errLost
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.Cancel()
	return err
}

// outcome says of an answer of which wrote lines went out whether it may be said again.
func outcome(err error, wrote, of int) error {
	var refused *sdk.RefusedError
	var retry *sdk.RetryError
	switch {
	case err == nil, errors.As(err, &refused):
		return err
	case errors.As(err, &retry):
		if wrote <= 1 { // the one that was refused
			return err
		}
		return fmt.Errorf("after %d of %d lines: %w", wrote, of, retry.Err)
	case wrote == 0:
		return sdk.Retry(retryOffline, err)
	}
	return fmt.Errorf("after %d of %d lines: %w", wrote, of, err)
}

// await registers an answer to target.
func (l *link) await(target string) *wait {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens++
	w := &wait{target: l.names.fold(target), token: "said-" + strconv.FormatUint(l.tokens, 10), result: make(chan error, 1)}
	l.waiting[w.token] = w
	return w
}

// speaking says whether an answer is under way.
func (l *link) speaking() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}

func (l *link) forget(w *wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, w.token)
}

// settle ends the wait that token names, if there is one.
func (l *link) settle(token string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.waiting[token]; w != nil {
		delete(l.waiting, token)
		w.result <- err
	}
}

// refuse ends the waits for target with the server's reason, and says whether there were any.
func (l *link) refuse(target, code, reason string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := sdk.Refused(fmt.Errorf("%s: %s (%s)", target, reason, code))
	kicked := isChannel(target, l.types) && !l.joined[l.names.fold(target)]
	if kicked || code == "439" || code == "263" { // the latter two: too many targets, too busy
		err = sdk.Retry(l.c.tune.rejoin, fmt.Errorf("%s: %s (%s)", target, reason, code))
	}
	found := false
	for token, w := range l.waiting {
		if w.target == l.names.fold(target) {
			found = true
			delete(l.waiting, token)
			w.result <- err
		}
	}
	return found
}
