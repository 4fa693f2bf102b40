package api

import (
	"io/fs"
	"net/http"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/protocol"
)

// schemaPath is where the JSON Schemas are, open to everybody: adapters and
// their tests need no key to check what they send.
const schemaPath = "/api/v1/schema/"

// schema serves one file, with or without its ending; the path alone lists them.
func (s *server) schema(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, schemaPath), ".json")
	if name == "" {
		names, err := fs.Glob(protocol.Schemas(), "*.json")
		if err != nil {
			problem(w, http.StatusInternalServerError, "internal error")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(mustJSON(map[string]any{"schemas": names}), '\n')) // the reader has gone if it fails
		return
	}
	raw, err := fs.ReadFile(protocol.Schemas(), name+".json")
	if err != nil {
		noSuchPath(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/schema+json")
	_, _ = w.Write(raw)
}
