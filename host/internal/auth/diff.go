package auth

import (
	"bytes"
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Diff is what of an object changed, for the audit log: the fields whose values
// differ, as they were and as they are. Both must marshal to JSON objects and
// hold no secret; both results are nil if nothing changed.
func Diff(before, after any) (was, is json.RawMessage) {
	b, a := fields(before), fields(after)
	changed, now := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for name, v := range a {
		if old, ok := b[name]; !ok || !bytes.Equal(old, v) {
			now[name] = v
			if ok {
				changed[name] = old
			}
		}
	}
	for name, old := range b {
		if _, ok := a[name]; !ok {
			changed[name] = old
		}
	}
	if len(changed)+len(now) == 0 {
		return nil, nil
	}
	return mustMarshal(changed), mustMarshal(now)
}

func fields(v any) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if err := json.Unmarshal(mustMarshal(v), &out); err != nil {
		panic("auth: " + err.Error())
	}
	return out
}

// mustMarshal encodes our own structs of strings, numbers and valid JSON.
func mustMarshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("auth: " + err.Error())
	}
	return b
}

// PolicyOf is what the audit log says of a channel, in REST's words.
func PolicyOf(r ledger.Channel) map[string]any {
	list := func(names []string) []string { return append([]string{}, names...) } // never null
	return map[string]any{
		"name": r.Name, "kind": r.Kind, "enabled": r.Enabled, "agent": r.Agent, "agents": list(r.Agents), "queue": r.Queue, "accept_capabilities": list(r.Accept),
		"allow_users": list(r.Users), "profile": r.Profile, "queue_limits": r.Limits, "retention_days": r.Retention, "rate_limit": r.Rate,
	}
}
