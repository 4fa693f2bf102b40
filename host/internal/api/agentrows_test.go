package api_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

type agentRow struct {
	ID, Name, Kind, Key string
	Enabled             bool
	BuiltIn             bool `json:"built_in"`
	Config              map[string]any
}

// What an operator makes by REST answers at once, and changes at once.
func TestAgentRows(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Parrots)
	row := h.Channel("c")
	c := h.Attach(t, row)
	c.Send(hosttest.Say("a", "/agent polly"))
	if got := c.MustNext(); !strings.Contains(got, "Current agent: echo") {
		t.Errorf("an agent that is not there was chosen: %s", got)
	}

	made := hosttest.Call[agentRow](h, "POST", "/agents", `{"name":"polly","kind":"parrot","config":{"say":"hello","secret":"s3cret"}}`, 201)
	if made.ID == "" || made.Name != "polly" || !made.Enabled || made.BuiltIn || !strings.HasPrefix(made.Key, auth.AgentKeyPrefix) ||
		made.Config["say"] != "hello" || made.Config["secret"] != "***" {
		t.Errorf("made %+v", made)
	}
	c.Send(hosttest.Say("a", "/agent polly"))
	c.Want(hosttest.Answer("a", "Agent polly answers from now on."))
	c.Send(hosttest.Say("a", "one"))
	c.Want(hosttest.Answer("a", "hello: one"))
	c.Send(hosttest.Say("b", "two")) // the other conversation has the channel's
	c.Want(hosttest.Answer("b", "echo: two"))

	changed := hosttest.Call[agentRow](h, "PATCH", "/agents/polly", `{"config":{"say":"bye","secret":"***"}}`, 200)
	if changed.Config["say"] != "bye" || changed.Config["secret"] != "***" {
		t.Errorf("changed to %+v", changed)
	}
	if stored, err := h.Store.Agent(t.Context(), made.ID); err != nil || string(stored.Config) != `{"say":"bye","secret":"s3cret"}` {
		t.Errorf("stored %s, %v", stored.Config, err)
	}
	c.Send(hosttest.Say("a", "three"))
	c.Want(hosttest.Answer("a", "bye: three"))

	h.Operator("PATCH", "/channels/c", `{"agents":["echo","polly"]}`, 200)
	for _, refused := range [][2]string{{"DELETE", ""}, {"PATCH", `{"name":"poll"}`}} {
		if status, problem := h.Ask(refused[0], "/agents/polly", refused[1]); status != 409 || !strings.Contains(problem, "in use by channel c") {
			t.Errorf("%s: status %d, %s", refused[0], status, problem)
		}
	}
	h.Operator("PATCH", "/channels/c", `{"agents":[]}`, 200)
	h.Operator("DELETE", "/agents/"+made.ID, "", 204)
	h.Operator("GET", "/agents/polly", "", 404)
	c.Send(hosttest.Say("a", "four")) // chosen once, and gone: the channel's answers
	c.Want(hosttest.Answer("a", "echo: four"))
	h.WantHistory(row, "in handled /agent polly", "out sent "+h.History(row)[1].Text, "in handled /agent polly", "out sent Agent polly answers from now on.",
		"in handled one", "out sent hello: one", "in handled two", "out sent echo: two", "in handled three", "out sent bye: three", "in handled four", "out sent echo: four")
	var speakers []string
	for _, e := range h.History(row) {
		if e.Direction == ledger.Out {
			speakers = append(speakers, e.Origin.Agent)
		}
	}
	if want := []string{"", "", "polly", "echo", "polly", "echo"}; !slices.Equal(speakers, want) {
		t.Errorf("spoken by %q, want %q", speakers, want)
	}
}

// The list has pages, and the built-in agent in it, which nobody can change.
func TestAgentList(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Parrots)
	for _, name := range []string{"a", "b"} {
		hosttest.Call[agentRow](h, "POST", "/agents", `{"name":"`+name+`","kind":"mute","enabled":false}`, 201)
	}
	var names []string
	for cursor := ""; ; {
		page := hosttest.Call[struct {
			Agents []agentRow
			Next   string `json:"next_cursor"`
		}](h, "GET", "/agents?limit=2&cursor="+cursor, "", 200)
		for _, a := range page.Agents {
			names = append(names, a.Name)
			if a.BuiltIn != (a.Name == "echo") || a.Enabled != (a.Name == "echo") || a.Key != "" {
				t.Errorf("listed %+v", a)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(names, []string{"echo", "a", "b"}) {
		t.Errorf("listed %v", names)
	}
	for _, refused := range [][2]string{{"DELETE", ""}, {"PATCH", `{"enabled":false}`}} {
		if status, problem := h.Ask(refused[0], "/agents/echo", refused[1]); status != 409 || !strings.Contains(problem, "built in") {
			t.Errorf("%s: status %d, %s", refused[0], status, problem)
		}
	}
	kinds := hosttest.Call[struct {
		Kinds []struct {
			Kind    string
			Key     bool
			Secrets []string
		}
	}](h, "GET", "/agents/_kinds", "", 200).Kinds
	if len(kinds) != 3 || kinds[2].Kind != "parrot" || !kinds[2].Key || !slices.Equal(kinds[2].Secrets, []string{"secret"}) {
		t.Errorf("kinds %+v", kinds)
	}
}

func TestAgentRefused(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Parrots)
	hosttest.Call[agentRow](h, "POST", "/agents", `{"name":"taken","kind":"parrot","config":{"say":"x"},"key":"the-key-that-is-taken"}`, 201)
	hosttest.Call[agentRow](h, "POST", "/agents", `{"name":"silent","kind":"mute"}`, 201)
	const canary = "canary-canary-canary"
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"errNoName":    {"POST", "/agents", `{"kind":"mute"}`, 422, "body.name"},
		"errNone":      {"POST", "/agents", `{"name":"none","kind":"mute"}`, 422, "body.name"},
		"errBuiltIn":   {"POST", "/agents", `{"name":"echo","kind":"mute"}`, 422, "body.name"},
		"errKinds":     {"POST", "/agents", `{"name":"_kinds","kind":"mute"}`, 422, "body.name"},
		"errTaken":     {"POST", "/agents", `{"name":"taken","kind":"mute"}`, 409, "body.name"},
		"errNoKind":    {"POST", "/agents", `{"name":"new"}`, 422, "kind"},
		"errKind":      {"POST", "/agents", `{"name":"new","kind":"martian"}`, 422, "expected echo, mute, parrot"},
		"errNoConfig":  {"POST", "/agents", `{"name":"new","kind":"parrot"}`, 422, "say: absent"},
		"errConfig":    {"POST", "/agents", `{"name":"new","kind":"parrot","config":[]}`, 422, "body.config"},
		"errNull":      {"POST", "/agents", `{"name":"new","kind":"mute","config":null}`, 422, "body.config"},
		"errField":     {"POST", "/agents", `{"name":"new2","kind":"parrot","config":{"say":"x","` + "color" + `":1}}`, 422, "color"},
		"errSecret":    {"POST", "/agents", `{"name":"new2","kind":"parrot","config":{"say":7,"secret":"` + canary + `"}}`, 422, "say: found a number, expected a string"},
		"errHidden":    {"POST", "/agents", `{"name":"new2","kind":"parrot","config":{"say":"x","secret":"***"}}`, 422, "secret: found ***"},
		"errLarge":     {"POST", "/agents", `{"name":"new2","kind":"parrot","config":{"say":"` + strings.Repeat("x", 64<<10) + `"}}`, 422, "at most 65536"},
		"errKey":       {"POST", "/agents", `{"name":"new2","kind":"mute","key":"` + canary + `"}`, 422, "body.key"},
		"errShortKey":  {"POST", "/agents", `{"name":"new2","kind":"parrot","config":{"say":"x"},"key":"canary"}`, 422, "at least 16"},
		"errTakenKey":  {"POST", "/agents", `{"name":"new2","kind":"parrot","config":{"say":"x"},"key":"the-key-that-is-taken"}`, 409, "body.key"},
		"errKeyList":   {"POST", "/agents", `{"name":"new2","kind":"parrot","config":{"say":"x"},"key":["` + canary + `"]}`, 422, "body.key"},
		"errUnknown":   {"POST", "/agents", `{"name":"new2","kind":"mute","colour":"red"}`, 422, "colour"},
		"errPatchKind": {"PATCH", "/agents/taken", `{"kind":"mute"}`, 422, "kind"},
		"errPatch":     {"PATCH", "/agents/taken", `{"config":{"say":null}}`, 422, "say: absent"},
		"errRename":    {"PATCH", "/agents/taken", `{"name":"silent"}`, 409, "body.name"},
		"errPatchNone": {"PATCH", "/agents/nobody", `{}`, 404, "nobody"},
		"errDelete":    {"DELETE", "/agents/nobody", "", 404, "nobody"},
		"errKeysNone":  {"GET", "/agents/nobody/keys", "", 404, "nobody"},
		"errMuteKey":   {"POST", "/agents/silent/keys", `{}`, 409, "no keys"},
		"errRotate":    {"POST", "/agents/taken/keys", `{"key":"the-key-that-is-taken"}`, 409, "body.key"},
		"errOverlap":   {"POST", "/agents/taken/keys", `{"overlap":"soon"}`, 422, "body.overlap"},
		"errRevoke":    {"DELETE", "/agents/taken/keys/99", "", 404, "99"},
		"errForeign":   {"DELETE", "/agents/silent/keys/1", "", 404, "not found"},
		"errKeyForm":   {"DELETE", "/agents/taken/keys/x", "", 404, "not found"},
		"errChannel":   {"POST", "/channels", `{"name":"new","agent":"nobody"}`, 422, "expected echo, "},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := h.Ask(c.method, c.path, c.body)
			if status != c.status || !strings.Contains(answer, c.want) {
				t.Errorf("status %d, want %d: %s", status, c.status, answer)
			}
			if strings.Contains(answer, "canary") {
				t.Errorf("a secret is echoed: %s", answer)
			}
		})
	}
	if h.Log.Count("canary") != 0 {
		t.Error("a secret is logged")
	}
}

func TestAgentKeysREST(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Parrots)
	gate := auth.NewGate(h.Store, nil)
	opens := func(key string) bool {
		_, err := gate.AdmitAgent(t.Context(), key)
		if err != nil && !errors.Is(err, auth.ErrInvalid) {
			t.Fatal(err)
		}
		return err == nil
	}
	first := hosttest.Call[agentRow](h, "POST", "/agents", `{"name":"polly","kind":"parrot","config":{"say":"x"}}`, 201)
	type key struct {
		ID, Key, Hint string
		Live          bool
	}
	second := hosttest.Call[key](h, "POST", "/agents/polly/keys", "", 201)
	third := hosttest.Call[key](h, "POST", "/agents/polly/keys", `{"overlap":"1h","expires":"100h","key":"a-key-of-my-own-"}`, 201)
	for _, k := range []string{first.Key, second.Key, third.Key} {
		if !opens(k) {
			t.Errorf("%s opens nothing", k)
		}
	}
	status, answer := h.Ask("GET", "/agents/"+first.ID+"/keys", "")
	if status != 200 || strings.Contains(answer, first.Key) || strings.Contains(answer, second.Key) {
		t.Errorf("status %d: %s", status, answer)
	}
	keys := hosttest.Call[struct{ Keys []key }](h, "GET", "/agents/polly/keys", "", 200).Keys
	if len(keys) != 3 || !keys[0].Live || keys[1].ID != second.ID || !strings.HasSuffix(second.Key, keys[1].Hint) {
		t.Fatalf("keys %+v", keys)
	}
	h.Operator("DELETE", "/agents/polly/keys/"+second.ID, "", 204)
	if opens(second.Key) || !opens(first.Key) {
		t.Error("the revoked key opens, or another does not")
	}
	a, _ := h.Roster.Agent("polly")
	if revoked, expired := a.(*hosttest.Parrot).Told(); len(revoked) != 1 || len(expired) != 2 {
		t.Errorf("the agent was told of %v revoked and all but %v expired", revoked, expired)
	}
	h.Operator("PATCH", "/agents/polly", `{"enabled":false}`, 200)
	if opens(first.Key) {
		t.Error("the key of a disabled agent opens")
	}

	changes, err := h.Store.Audit(t.Context(), ledger.AuditQuery{}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	for _, c := range changes {
		acts = append(acts, c.Action+" "+c.Target)
		if strings.Contains(string(c.Detail), "pna_") || strings.Contains(string(c.Detail), "of-my-own") {
			t.Errorf("the audit log holds a key: %s", c.Detail)
		}
	}
	if want := []string{"agent.update polly", "agent.key.revoke polly", "agent.key.rotate polly", "agent.key.rotate polly", "agent.create polly"}; !slices.Equal(acts, want) {
		t.Errorf("audited %v, want %v", acts, want)
	}
}
