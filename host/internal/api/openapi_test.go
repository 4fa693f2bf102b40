package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// componentName is what OpenAPI allows as a key in components.
var componentName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

var pathParam = regexp.MustCompile(`\{([^}]+)\}`)

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	resp, err := http.Get(h.URL() + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	type schema = map[string]any
	var doc struct {
		OpenAPI    string
		Info       struct{ Title, Version string }
		Paths      map[string]map[string]json.RawMessage
		Components map[string]schema
	}
	whole, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(whole, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || doc.Info.Title == "" || doc.Info.Version == "" {
		t.Errorf("openapi %q, info %+v", doc.OpenAPI, doc.Info)
	}
	var tree schema
	if err := json.Unmarshal(whole, &tree); err != nil {
		t.Fatal(err)
	}
	checkRefs(t, tree, tree)
	for kind, named := range doc.Components {
		for name := range named {
			if !componentName.MatchString(name) {
				t.Errorf("components: %s: %q is no name", kind, name)
			}
		}
	}
	ids := map[string]bool{}
	for path, operations := range doc.Paths {
		for method, raw := range operations {
			name := strings.ToUpper(method) + " " + path
			var op struct {
				ID         string `json:"operationId"`
				Summary    string
				Parameters []struct {
					Name, In string
					Required bool
					Schema   schema
				}
				Responses map[string]struct {
					Description string
					Content     map[string]schema
				}
				Security []map[string][]string
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if op.ID == "" || ids[op.ID] || op.Summary == "" {
				t.Errorf("%s: operationId %q is missing or there twice, or there is no summary", name, op.ID)
			}
			ids[op.ID] = true
			noKey := op.ID == "set-up-operator" || op.ID == "open-session" // what they take is the credential
			if !noKey && (len(op.Security) != 1 || op.Security[0]["key"] == nil) || noKey && len(op.Security) != 0 {
				t.Errorf("%s: security %v, expected the key", name, op.Security)
			}
			for _, param := range pathParam.FindAllStringSubmatch(path, -1) {
				found := false
				for _, p := range op.Parameters {
					found = found || p.Name == param[1] && p.In == "path" && p.Required && p.Schema != nil
				}
				if !found {
					t.Errorf("%s: parameter %s is not described", name, param[1])
				}
			}
			if _, ok := op.Responses["401"]; !ok {
				t.Errorf("%s: no answer 401", name)
			}
			for status, answer := range op.Responses {
				if answer.Description == "" {
					t.Errorf("%s: %s has no description", name, status)
				}
				if _, ok := answer.Content["application/problem+json"]; status >= "4" && !ok {
					t.Errorf("%s: %s is no problem: %v", name, status, answer.Content)
				}
			}
		}
	}
	for _, want := range []string{
		"list-channels", "create-channel", "get-channel", "update-channel", "delete-channel", "list-kinds", "list-tokens", "rotate-token",
		"revoke-token", "list-messages", "send-message", "test-channel", "list-conversations", "list-adapters", "list-capabilities", "list-audit",
	} {
		if !ids[want] {
			t.Errorf("no operation %s", want)
		}
	}
}

// checkRefs follows every $ref below node.
func checkRefs(t *testing.T, root map[string]any, node any) {
	switch v := node.(type) {
	case []any:
		for _, e := range v {
			checkRefs(t, root, e)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			var at any = root
			for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[step]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, e := range v {
			checkRefs(t, root, e)
		}
	}
}
