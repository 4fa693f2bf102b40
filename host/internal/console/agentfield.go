package console

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// fieldValue makes the value of a config's field from what was typed; nil =
// nothing was.
func fieldValue(f api.AgentField, text string) (any, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	switch f.Type {
	case "number":
		return wholeNumber(text)
	case "secrets":
		return lines(text), nil
	case "networks":
		if text == "all" {
			return true, nil
		}
		return lines(text), nil
	case "headers":
		out := map[string]string{}
		for _, l := range lines(text) {
			name, value, ok := strings.Cut(l, ":")
			if !ok {
				return nil, errors.New("expected lines such as Authorization: Bearer …")
			}
			out[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		return out, nil
	case "json":
		if !json.Valid([]byte(text)) {
			return nil, errors.New("expected JSON, such as {}")
		}
		return json.RawMessage(text), nil
	}
	return text, nil
}

// fieldText is how a value is typed: fieldValue the other way.
func fieldText(f api.AgentField, value json.RawMessage) string {
	if len(value) == 0 || string(value) == "null" {
		return ""
	}
	switch f.Type {
	case "json", "number":
		return string(value)
	case "networks":
		var all bool
		if json.Unmarshal(value, &all) == nil {
			if all {
				return "all"
			}
			return ""
		}
		var list []string
		if json.Unmarshal(value, &list) != nil {
			return ""
		}
		return strings.Join(list, "\n")
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}

// fieldInput is the field of the form.
func fieldInput(f agentForm, field api.AgentField) input {
	in := input{
		Name: "config." + field.Name, Label: fieldLabel(field.Name), Hint: field.About + ".", Value: f.Get("config." + field.Name),
		Error: f.fieldFault(field.Name), Optional: !field.Required, Code: field.Type != "number" && field.Type != "duration",
	}
	secret := slices.Contains(f.Kind.Secrets, field.Name)
	if secret {
		in.Hint += " It is never shown again."
		if f.Made {
			in.Hint += " Nothing: it stays as it is."
		}
		in.Complete = "new-password"
		in = in.again(f.Values, f.without())
	}
	switch field.Type {
	case "url":
		in.Placeholder = "https://agent.example.org/"
	case "secret":
		in.Type = "password"
	case "secrets", "headers", "networks":
		in.Rows = 3
		in.Hint += " One a line."
	case "json":
		in.Rows = 3
	}
	if field.Type == "networks" {
		in.Hint += " all: any private address."
	}
	if field.Type == "headers" {
		in.Placeholder = "Authorization: Bearer …"
	}
	return in
}

func fieldLabel(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	if words == "url" {
		return "URL"
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// configText is a config's value as the agent's page shows it.
func configText(f api.AgentField, secrets []string, config json.RawMessage) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(config, &fields); err != nil {
		return ""
	}
	if slices.Contains(secrets, f.Name) && len(fields[f.Name]) > 0 {
		return "set, not shown"
	}
	return strings.ReplaceAll(fieldText(f, fields[f.Name]), "\n", ", ")
}

// kindDialsIn is the kind of agents that dial in with a key.
const kindDialsIn = "websocket"
