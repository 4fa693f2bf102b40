// Package schema is the JSON Schema (2020-12) of messages, parts and frames. The
// files beside it are generated from the Go types (make generate).
package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/pontoon-bridge/pontoon/sdk/internal/shape"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Generate makes all files anew from the Go types.
func Generate() map[string][]byte {
	return map[string][]byte{
		"message.json":          document("message.json", "A message", map[string]any{"$ref": "#/$defs/message", "$defs": message.Schema()}),
		"part.json":             document("part.json", "One part of a message", map[string]any{"$ref": "message.json#/$defs/part"}),
		"frame-to-host.json":    document("frame-to-host.json", "A frame of an adapter", union(toHost, rules, false)),
		"frame-to-adapter.json": document("frame-to-adapter.json", "A frame of the host", union(toAdapter, rules, true)),

		"agent-frame-to-host.json":  document("agent-frame-to-host.json", "A frame of an agent", union(fromAgent, agentRules, false)),
		"agent-frame-to-agent.json": document("agent-frame-to-agent.json", "A frame of the host to an agent", union(toAgent, nil, true)),
	}
}

func document(name, title string, body map[string]any) []byte {
	body["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	body["$id"] = name
	body["title"] = title
	raw, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		panic("schema: " + err.Error()) // maps, slices and strings
	}
	return append(raw, '\n')
}

// union is a schema of objects that "type" tells apart, in the form that generators of
// types understand. The frames of an adapter or agent are a closed list; those of a newer
// host are ignored by an older one.
func union(frames map[string]any, rules map[string]string, open bool) map[string]any {
	defs, mapping := map[string]any{}, map[string]string{}
	names := slices.Sorted(maps.Keys(frames))
	var cases []any
	add := func(name string, def map[string]any) {
		defs[name] = def
		cases = append(cases, map[string]any{"$ref": "#/$defs/" + name})
	}
	for _, name := range names {
		def := shape.Of(reflect.TypeOf(frames[name])).Schema()
		fields := def["properties"].(map[string]any)
		for field, ref := range refs {
			if of, ok := fields[field].(map[string]any); ok && of["type"] != "string" { // the message of an error is text
				fields[field] = ref
			}
		}
		fields["type"] = map[string]any{"const": name}
		required, _ := def["required"].([]string)
		def["required"] = append([]string{"type"}, required...)
		if rule, ok := rules[name]; ok {
			def["allOf"] = json.RawMessage("[" + rule + "]")
		}
		add(name, def)
		mapping[name] = "#/$defs/" + name
	}
	if open {
		add("later", map[string]any{
			"description": "A frame of a later protocol, to be ignored", "type": "object", "required": []string{"type"},
			"properties": map[string]any{"type": map[string]any{"type": "string", "not": map[string]any{"enum": names}}},
		})
	}
	return map[string]any{"oneOf": cases, "discriminator": map[string]any{"propertyName": "type", "mapping": mapping}, "$defs": defs}
}
