package message

import "encoding/json"

// Admit is how the host takes what comes in: an error, which is the Problems, if no
// host can take it, else the parts with all that is odd about them. Whatever is odd is kept as it
// came, but for keys of a file's preview that could hold what is in the file:
// they are dropped.
func Admit(parts []Part, l Limits) ([]Part, Problems, error) {
	found := Validate(parts, l)
	if over := found.Over(); len(over) > 0 {
		return nil, nil, over
	}
	for i, p := range parts {
		if p.Type == TypeFile {
			parts[i].raw = rewrite(p.raw, "preview", safePreview)
		}
	}
	return parts, found, nil
}

// Warn keeps problems in the metadata; none leave it as it is.
func (m Meta) Warn(p Problems) Meta {
	if len(p) == 0 {
		return m
	}
	raw, err := json.Marshal(p)
	if err != nil {
		panic("message: marshal problems: " + err.Error()) // strings and numbers
	}
	if m == nil {
		m = Meta{}
	}
	m[MetaWarnings] = raw
	return m
}

// safePreview is a preview without the keys that it may not have; as it came if
// it has none.
func safePreview(raw json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return raw
	}
	n := len(all)
	for name := range all {
		if !isPreviewKey(name) {
			delete(all, name)
		}
	}
	if len(all) == n {
		return raw
	}
	out, err := json.Marshal(all)
	if err != nil {
		panic("message: marshal a preview: " + err.Error()) // it was JSON
	}
	return out
}
