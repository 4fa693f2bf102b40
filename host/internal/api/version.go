package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// tagged is an answer that shows a version of a row.
type tagged[T any] struct {
	ETag string `header:"ETag" doc:"The version of what can be changed: for If-Match"`
	Body T
}

// IfMatch is which version a request wants to change.
type IfMatch struct {
	IfMatch string `header:"If-Match" doc:"ETag of the version that you know: if it is not the newest any more, the answer is 412 and says what changed, and nothing is done"`
}

// Changed is a change that somebody else made of a channel or an agent.
type Changed struct {
	At     Time            `json:"at"`
	Actor  string          `json:"actor,omitempty" doc:"As the audit log has it; absent for who may not read that"`
	Action string          `json:"action"`
	Before json.RawMessage `json:"before" doc:"The fields that changed, as they were; null = the log does not say"`
	After  json.RawMessage `json:"after" doc:"The fields that changed, as they are"`
}

// staleProblem is the problem of a request that knows an older version.
type staleProblem struct {
	huma.ErrorModel
	ETag    string    `json:"etag" doc:"Of the newest version"`
	Changes []Changed `json:"changes" doc:"Since the version that the request knows, newest first"`
}

// maxChanges is how many changes a stale request is told of.
const maxChanges = 50

// tagPrefix begins the tags of one channel or agent, so that the tag of one that was
// deleted does not match its successor of the same name.
func tagPrefix(id string) string { return id[:min(8, len(id))] + "-" }

// tagOf is the entity tag of a version of a channel or agent. content is what it shows:
// after a backup was restored versions are counted again, and the tag of one from before
// must not match another content.
func tagOf(id string, version int64, content any) string {
	b, _ := json.Marshal(content) // what can't be written is told apart by its version alone
	sum := sha256.Sum256(b)
	return `"` + tagPrefix(id) + hex.EncodeToString(sum[:6]) + "-" + strconv.FormatInt(version, 10) + `"`
}

func channelTag(r ledger.Channel) string { return tagOf(r.ID, r.Version, auth.PolicyOf(r)) }

func (s *server) agentTag(r ledger.Agent) string { return tagOf(r.ID, r.Version, s.auditAgent(r)) }

// formed is an error of a header that names no tag as this host gives them: a request
// that was never meant for a version must not be told that somebody changed something.
func (m IfMatch) formed() error {
	for tag := range strings.SplitSeq(m.IfMatch, ",") {
		switch tag = strings.TrimSpace(tag); {
		case m.IfMatch == "" || tag == "*":
		case strings.HasPrefix(tag, "W/"):
			return field(http.StatusBadRequest, "header.If-Match", "found a weak tag, which never matches (RFC 9110, 13.1.1): expected the ETag as this host gave it", clip(tag))
		case !givenTag.MatchString(tag):
			return field(http.StatusBadRequest, "header.If-Match", "found no tag that this host gives, expected an ETag as it was answered, in quotes, or *", clip(tag))
		}
	}
	return nil
}

// givenTag is the form of tagOf, and that of hosts before it, whose tags had no hash and match nothing now.
var givenTag = regexp.MustCompile(`^"[0-9A-Za-z]{1,8}-(?:[0-9a-f]{12}-)?[0-9]+"$`)

// known is the newest version of a channel or agent that the request names; 0 = it
// names others only. matches: it names this tag, or whichever there is.
func (m IfMatch) known(id, now string) (version int64, matches bool) {
	for tag := range strings.SplitSeq(m.IfMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == now {
			return 0, true
		}
		if n, ok := strings.CutPrefix(strings.Trim(tag, `"`), tagPrefix(id)); ok {
			v, _ := strconv.ParseInt(n[strings.LastIndexByte(n, '-')+1:], 10, 64)
			version = max(version, v)
		}
	}
	return version, m.IfMatch == ""
}

// check is nil if the request may change this version, which has this tag; else it is a
// problem that says what has changed since the version that it knows.
func (s *server) check(ctx context.Context, m IfMatch, id, tag string, version int64) error {
	if err := m.formed(); err != nil {
		return err
	}
	known, matches := m.known(id, tag)
	if matches {
		return nil
	}
	var changes []ledger.Change
	if known > 0 && known < version {
		var err error
		if changes, err = s.Store.ChangesSince(ctx, id, known, maxChanges); err != nil {
			return err
		}
	}
	h := holderOf(ctx)
	named := h.May(auth.ScopeAdmin) && !h.Limited() // as for the audit log
	p := &staleProblem{ETag: tag, Changes: []Changed{}}
	p.Status, p.Title = http.StatusPreconditionFailed, http.StatusText(http.StatusPreconditionFailed)
	p.Detail = "header.If-Match: it was changed since the version that you know: read it again"
	if known >= version {
		p.Detail = "header.If-Match: it is another one than the one that you know, since a backup was restored: read it again"
	}
	seen := map[string]bool{}
	for _, c := range changes {
		one := Changed{At: timeOf(c.At), Action: c.Action, Before: orNull(c.Before), After: orNull(c.After)}
		by := ""
		if named {
			one.Actor, by = c.Actor, " by "+c.Actor
		}
		p.Changes = append(p.Changes, one)
		after := became(one.Before, one.After, true)
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if seen[name] { // by a newer change
				continue
			}
			seen[name] = true
			p.Errors = append(p.Errors, &huma.ErrorDetail{
				Location: "body." + name, Message: fmt.Sprintf("was changed to %s%s at %s", clip(string(after[name])), by, one.At.UTC().Format("2006-01-02 15:04:05 MST")),
			})
		}
	}
	return huma.ErrorWithHeaders(p, http.Header{"ETag": {p.ETag}})
}

// became is which fields of an object have another value, and which. Of those that are
// objects themselves, as an agent's config, it is their fields if deep.
func became(before, after json.RawMessage, deep bool) map[string]json.RawMessage {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
		return nil
	}
	out := map[string]json.RawMessage{}
	for name, v := range is {
		var inner map[string]json.RawMessage
		switch {
		case bytes.Equal(was[name], v):
			continue
		case deep:
			inner = became(was[name], v, false)
		}
		if inner == nil {
			out[name] = v
		}
		for field, v := range inner {
			out[name+"."+field] = v
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			out[name] = json.RawMessage("null")
		}
	}
	return out
}

func orNull(b json.RawMessage) json.RawMessage {
	if b == nil {
		return json.RawMessage("null")
	}
	return b
}
