package agui

import (
	"errors"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

func TestParseRunErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`null`: "agui: run: found null", `{`: "agui: run: unexpected", `{"runId":"r","messages":[]}`: "agui: threadId: found nothing",
		`{"threadId":"t","runId":"","messages":[]}`:                   "agui: runId: found an empty string",
		`{"threadId":"t","runId":"r"}`:                                "agui: messages: found nothing",
		`{"threadId":"t","runId":"r","messages":{}}`:                  "agui: messages: found an object",
		`{"threadId":"t","runId":"r","messages":[{"role":"user"},3]}`: "agui: messages[1].message: found a number",
		`{"threadId":"t","runId":"r","messages":[{}]}`:                "agui: messages[0].role: found nothing",
	} {
		if r, err := ParseRun([]byte(raw)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", raw, r, err, want)
		}
	}
}

func TestRunCanonical(t *testing.T) {
	for name, c := range map[string]struct {
		messages string
		n, at    int // how many are taken, and which is what the run is for
		refused  string
	}{
		"none":        {``, 0, -1, ""},
		"last user":   {`{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}`, 3, 1, ""},
		"no user":     {`{"role":"assistant","content":"a"},{"role":"tool","toolCallId":"c","content":"b"}`, 2, 1, ""},
		"one refused": {`{"role":"assistant"},{"role":"user","content":"b"}`, 1, 0, "messages[0]: "},
		"own run id":  {`{"role":"user","content":"b","metadata":{"run_id":"own"}}`, 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRun([]byte(`{"threadId":"t","runId":"r","messages":[` + c.messages + `],"forwardedProps":null}`))
			if err != nil {
				t.Fatal(err)
			}
			ms, err := r.Canonical()
			if (err != nil) != (c.refused != "") || err != nil && (!errors.Is(err, message.ErrNoContent) || !strings.HasPrefix(err.Error(), c.refused)) {
				t.Errorf("error %v", err)
			}
			if len(ms) != c.n {
				t.Fatalf("%d messages", len(ms))
			}
			for i, m := range ms {
				if (m.Meta.String(MetaRunID) == "r") != (i == c.at) || (string(m.Meta[MetaPayload]) == "null") != (i == c.at) {
					t.Errorf("messages[%d] has %s", i, encode(t, m.Meta))
				}
			}
		})
	}
}
