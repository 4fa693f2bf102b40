// Package object reads JSON objects of which every key must survive, those that
// no struct knows included.
package object

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Take moves a field to where it belongs; null and an empty array stay.
func Take(all map[string]json.RawMessage, name string, to any) error {
	raw, ok := all[name]
	if !ok || string(raw) == "null" || raw[0] == '[' && len(bytes.TrimSpace(raw[1:])) == 1 {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	delete(all, name)
	return nil
}
