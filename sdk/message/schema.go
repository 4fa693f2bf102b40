package message

import (
	"encoding/json"
	"reflect"

	"github.com/pontoon-bridge/pontoon/sdk/internal/shape"
)

// more is what JSON Schema must know of a part beyond its struct: the rules of
// Validate that a schema can say. (It can't say that the names in a form
// differ, nor compare sizes with limits.)
var more = map[string]string{
	TypeFile: `{
		"properties": {"preview": {"propertyNames": {"enum": ["kind", "fileName", "mimeType", "sizeBytes"]}}},
		"if": {"properties": {"uploadStatus": {"const": "completed"}}, "required": ["uploadStatus"]},
		"then": {"properties": {"url": {"minLength": 1}}, "required": ["url"]}}`,
	TypeVision: `{"properties": {"data": {"pattern": "^[A-Za-z0-9+/]*={0,2}$"}}}`,
	TypeAudioOutput: `{
		"if": {"properties": {"status": {"const": "interrupted"}}, "required": ["status"]},
		"then": {"required": ["playedUpToMs"]}}`,
	TypeUI: `{"properties": {"components": {"items": {"allOf": [
		{"if": {"properties": {"type": {"enum": ["heading", "text"]}}}, "then": {"required": ["text"]}, "else": {"required": ["name"]}},
		{"if": {"properties": {"type": {"enum": ["radio", "select", "checkbox-group"]}}},
			"then": {"properties": {"options": {"minItems": 1}}, "required": ["options"]}},
		{"if": {"properties": {"type": {"const": "checkbox"}}},
			"then": {"properties": {"default": {"type": ["boolean", "null"]}}, "required": ["label"]}},
		{"if": {"properties": {"type": {"const": "checkbox-group"}}},
			"then": {"properties": {"default": {"type": ["array", "null"], "items": {"type": "string"}}}}},
		{"if": {"properties": {"type": {"enum": ["input", "textarea", "radio", "select"]}}},
			"then": {"properties": {"default": {"type": ["string", "null"]}}}}]}}}}`,
	TypeUISubmit: `{"properties": {"values": {"additionalProperties":
		{"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]}}}}`,
}

// Schema is the definitions of JSON Schema 2020-12 of the message: one of each
// type of part by its name, "part" for all of them and "message" for the
// envelope. Unknown types and keys are allowed in all of them.
func Schema() map[string]any {
	defs := map[string]any{}
	var cases []any
	for _, name := range Types() {
		def := shapes()[name].Schema()
		def["properties"].(map[string]any)["type"] = map[string]any{"const": name}
		if extra, ok := more[name]; ok {
			def["allOf"] = []any{json.RawMessage(extra)}
		}
		defs[name] = def
		cases = append(cases, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"type": map[string]any{"const": name}}},
			"then": map[string]any{"$ref": "#/$defs/" + name},
		})
	}
	defs["part"] = map[string]any{
		"type": "object", "required": []string{"type"},
		"properties": map[string]any{"type": map[string]any{"type": "string", "minLength": 1}},
		"allOf":      cases,
	}
	envelope := shape.Of(reflect.TypeFor[Envelope]()).Schema()
	fields := envelope["properties"].(map[string]any)
	fields["parts"] = map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/part"}}
	fields["createdAt"] = map[string]any{"type": "string", "format": "date-time"}
	fields["rawResponse"] = map[string]any{"type": "object", "required": []string{"events"}, "properties": map[string]any{"events": map[string]any{"type": "array"}}}
	defs["message"] = envelope
	return defs
}
