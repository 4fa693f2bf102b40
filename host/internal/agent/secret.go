package agent

import (
	"encoding/json"
	"errors"
	"slices"
)

// Hidden is shown in place of a secret, and means "as it is" when it comes back.
const Hidden = "***"

// Shown is a row's config without its secrets. Of a kind that nobody knows any
// more, everything may be one.
func (r *Roster) Shown(kind string, config json.RawMessage) json.RawMessage {
	fields, err := object(config)
	if err != nil {
		return json.RawMessage("{}")
	}
	for name := range fields {
		if r.Secret(kind, name) {
			fields[name] = json.RawMessage(`"` + Hidden + `"`)
		}
	}
	return encode(fields)
}

// Merge is the config with the fields of patch in place of its own; one that is
// null goes, and a secret that is Hidden stays what it was.
func (k Kind) Merge(config, patch json.RawMessage) (json.RawMessage, error) {
	fields, err := object(config)
	if err != nil {
		fields = map[string]json.RawMessage{}
	}
	changes, err := object(patch)
	if err != nil {
		return nil, err
	}
	for name, value := range changes {
		var text string
		switch {
		case string(value) == "null":
			delete(fields, name)
		case slices.Contains(k.Secrets, name) && json.Unmarshal(value, &text) == nil && text == Hidden:
			if fields[name] == nil {
				return nil, errors.New(name + ": found " + Hidden + ", which stands for a secret that is there: expected the secret")
			}
		default:
			fields[name] = value
		}
	}
	return encode(fields), nil
}

func object(config json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(config, &fields); err != nil || fields == nil {
		return nil, errors.New("found no JSON object, expected one")
	}
	return fields, nil
}

// encode can't fail: its values came from JSON.
func encode(fields map[string]json.RawMessage) json.RawMessage {
	b, err := json.Marshal(fields)
	if err != nil {
		panic("agent: " + err.Error())
	}
	return b
}
