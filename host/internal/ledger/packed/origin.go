package packed

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// AppendOrigin appends the origin as JSON; nothing for the zero Origin.
func AppendOrigin(dst []byte, o ledger.Origin) []byte {
	if o == (ledger.Origin{}) {
		return dst
	}
	if dst == nil { // names and punctuation take 66 bytes
		dst = make([]byte, 0, 80+len(o.SessionKey)+len(o.UserID)+len(o.UserName)+len(o.Agent)+len(o.ReplyCtx))
	}
	dst = append(dst, '{')
	n := len(dst)
	add := func(name, value string) {
		if value == "" {
			return
		}
		if len(dst) > n {
			dst = append(dst, ',')
		}
		dst = append(dst, name...)
		dst = wire.AppendString(dst, value)
	}
	add(`"session_key":`, o.SessionKey)
	add(`"user_id":`, o.UserID)
	add(`"user_name":`, o.UserName)
	add(`"agent":`, o.Agent)
	if o.ReplyCtx != "" {
		if len(dst) > n {
			dst = append(dst, ',')
		}
		dst = append(dst, `"reply_ctx":`...)
		dst = append(dst, o.ReplyCtx...)
	}
	return append(dst, '}')
}

// ParseOrigin reads what AppendOrigin wrote.
func ParseOrigin(b []byte) (ledger.Origin, error) {
	if len(b) == 0 {
		return ledger.Origin{}, nil
	}
	if o, ok := scanOrigin(string(b)); ok {
		return o, nil
	}
	return decodeOrigin(b)
}

func decodeOrigin(b []byte) (ledger.Origin, error) {
	var o struct {
		SessionKey string          `json:"session_key"`
		UserID     string          `json:"user_id"`
		UserName   string          `json:"user_name"`
		Agent      string          `json:"agent"`
		ReplyCtx   json.RawMessage `json:"reply_ctx"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return ledger.Origin{}, err
	}
	return ledger.Origin{SessionKey: o.SessionKey, UserID: o.UserID, UserName: o.UserName, Agent: o.Agent, ReplyCtx: string(o.ReplyCtx)}, nil
}

// scanOrigin is the fast path of ParseOrigin: it takes what AppendOrigin writes if no
// string needs an escape, without a copy. Anything else is left to the library;
// what it takes, the library reads the same (FuzzOrigin).
func scanOrigin(s string) (o ledger.Origin, ok bool) {
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return o, false
	}
	s = s[1 : len(s)-1]
	for _, f := range []struct {
		name string
		dst  *string
	}{{`"session_key":"`, &o.SessionKey}, {`"user_id":"`, &o.UserID}, {`"user_name":"`, &o.UserName}, {`"agent":"`, &o.Agent}} {
		rest, found := strings.CutPrefix(s, f.name)
		if !found {
			continue
		}
		end := strings.IndexByte(rest, '"')
		if end < 0 || !plain(rest[:end]) {
			return o, false
		}
		*f.dst, s = rest[:end], rest[end+1:]
		if s == "" {
			return o, true
		}
		if s[0] != ',' {
			return o, false
		}
		s = s[1:]
	}
	raw, found := strings.CutPrefix(s, `"reply_ctx":`)
	if !found || raw == "" || raw[0] <= ' ' || raw[len(raw)-1] <= ' ' || !json.Valid([]byte(raw)) {
		return o, false
	}
	o.ReplyCtx = raw
	return o, true
}

// plain reports whether what stands between two quotes is what it means.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '\\' {
			return false
		}
	}
	return utf8.ValidString(s)
}
