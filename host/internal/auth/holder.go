package auth

import (
	"slices"
	"strconv"
)

// Holder is who makes a request: the operator, by the key of the data directory
// or logged in, or who holds a key that the operator made.
type Holder struct {
	ID       int64 // of the key; 0 = the operator
	Session  int64 // of the operator who is logged in; 0 = by a key
	Name     string
	Scopes   []string // of the operator none, who may do all
	Channels []string // ids of those that the key is limited to; empty = all
}

// Operator is who holds the key of the data directory.
func Operator() Holder { return Holder{Name: operatorName} }

// May reports whether the holder may do what the scope stands for. "" is what the
// operator alone may.
func (h Holder) May(s Scope) bool {
	return h.ID == 0 || s != "" && (slices.Contains(h.Scopes, string(s)) || slices.Contains(h.Scopes, string(ScopeAdmin)))
}

// Limited reports whether the holder sees some channels only.
func (h Holder) Limited() bool { return len(h.Channels) > 0 }

// Sees reports whether the channel with this id is there for the holder.
func (h Holder) Sees(channel string) bool {
	return !h.Limited() || slices.Contains(h.Channels, channel)
}

// Ref is how others call the holder: the id of the key as operators see it.
func (h Holder) Ref() string {
	if h.ID == 0 {
		return operatorName
	}
	return strconv.FormatInt(h.ID, 10)
}

// Via is by which credential the holder came, for the audit log.
func (h Holder) Via() string {
	switch {
	case h.ID != 0:
		return "key:" + strconv.FormatInt(h.ID, 10)
	case h.Session != 0:
		return "session:" + strconv.FormatInt(h.Session, 10)
	}
	return KeyFile
}
