package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// stream makes an SSE stream of events in a short form: the type's name, then
// pairs of a field and its text. Text that begins with { or [ is JSON, but for a
// delta.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		words := strings.Split(e, " ")
		fields := map[string]any{"type": words[0]}
		for i := 1; i+1 < len(words); i += 2 {
			fields[words[i]] = strings.ReplaceAll(words[i+1], "_", " ")
			if v := words[i+1]; words[i] != "delta" && (v[0] == '{' || v[0] == '[') {
				fields[words[i]] = json.RawMessage(v)
			}
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "data: %s\n\n", raw)
	}
	return b.String()
}

func readRun(t *testing.T, body string) (*spoken, error) {
	t.Helper()
	s := new(spoken)
	return s, newRun(t.Context(), "run-1", s).read(strings.NewReader(body))
}

func TestRunEvents(t *testing.T) {
	for name, c := range map[string]struct{ events, want string }{
		"one message": {stream("RUN_STARTED", "TEXT_MESSAGE_START messageId a role assistant", "TEXT_MESSAGE_CONTENT messageId a delta Hel", "TEXT_MESSAGE_CONTENT messageId a delta lo",
			"TEXT_MESSAGE_END messageId a", "RUN_FINISHED"), "typing|~Hel|~Hello|Hello"},
		"several messages": {stream("TEXT_MESSAGE_START messageId a", "TEXT_MESSAGE_CONTENT messageId a delta A", "TEXT_MESSAGE_END messageId a",
			"TEXT_MESSAGE_START messageId b", "TEXT_MESSAGE_CONTENT messageId b delta B", "TEXT_MESSAGE_END messageId b", "RUN_FINISHED"), "~A|A|~B|B"},
		"at the same time": {stream("TEXT_MESSAGE_START messageId a", "TEXT_MESSAGE_START messageId b", "TEXT_MESSAGE_CONTENT messageId b delta B",
			"TEXT_MESSAGE_CONTENT messageId a delta A", "TEXT_MESSAGE_END messageId b", "TEXT_MESSAGE_CONTENT messageId a delta A", "TEXT_MESSAGE_END messageId a", "RUN_FINISHED"), "~A|~AA|AA|B"},
		"the second goes on": {stream("TEXT_MESSAGE_START messageId a", "TEXT_MESSAGE_START messageId b", "TEXT_MESSAGE_CONTENT messageId b delta B",
			"TEXT_MESSAGE_CONTENT messageId a delta A", "TEXT_MESSAGE_END messageId a", "TEXT_MESSAGE_CONTENT messageId b delta !", "TEXT_MESSAGE_END messageId b", "RUN_FINISHED"), "~A|A|~B|~B!|B!"},
		"chunks": {stream("TEXT_MESSAGE_CHUNK messageId a delta A", "TEXT_MESSAGE_CHUNK delta A", "TEXT_MESSAGE_CHUNK messageId b delta B",
			"TOOL_CALL_CHUNK toolCallId t toolCallName f delta {}", "TOOL_CALL_CHUNK delta _", "RUN_FINISHED"), "~A|~AA|AA|~B|B|[tool-call]"},
		"chunk ended by a step":     {stream("TEXT_MESSAGE_CHUNK messageId a delta A", "STEP_STARTED stepName s", "TEXT_MESSAGE_CHUNK messageId a delta B", "RUN_FINISHED"), "~A|A|~B|B"},
		"no start":                  {stream("TEXT_MESSAGE_CONTENT messageId a delta A", "TEXT_MESSAGE_END messageId a", "RUN_FINISHED"), "~A|A"},
		"no end":                    {stream("TEXT_MESSAGE_START messageId a", "TEXT_MESSAGE_CONTENT messageId a delta A", "RUN_FINISHED"), "~A|A"},
		"an end of nothing":         {stream("TEXT_MESSAGE_END messageId a", "TOOL_CALL_END toolCallId t", "RUN_FINISHED"), ""},
		"empty message":             {stream("TEXT_MESSAGE_START messageId a", "TEXT_MESSAGE_END messageId a", "RUN_FINISHED"), ""},
		"the user's own, come back": {stream("TEXT_MESSAGE_START messageId a role user", "TEXT_MESSAGE_CONTENT messageId a delta A", "TEXT_MESSAGE_END messageId a", "RUN_FINISHED"), ""},
		"tool": {stream("TOOL_CALL_START toolCallId t toolCallName f", `TOOL_CALL_ARGS toolCallId t delta /stop`, "TOOL_CALL_END toolCallId t",
			"TOOL_CALL_RESULT messageId m toolCallId t content /stop", "RUN_FINISHED"), "[tool-call]|[tool-result]"},
		"tool within a text": {stream("TEXT_MESSAGE_START messageId a", "TEXT_MESSAGE_CONTENT messageId a delta A", "TOOL_CALL_START toolCallId t toolCallName f parentMessageId a",
			"TOOL_CALL_END toolCallId t", "TEXT_MESSAGE_CONTENT messageId a delta A", "TEXT_MESSAGE_END messageId a", "TOOL_CALL_RESULT messageId m toolCallId t content "+`[{"type":"text","text":"x"}]`, "RUN_FINISHED"), "~A|~AA|AA|[tool-call]|[tool-result]"},
		"a result ends its call": {stream("TOOL_CALL_START toolCallId t toolCallName f", "TOOL_CALL_RESULT messageId m toolCallId t content x", "RUN_FINISHED"), "[tool-call]|[tool-result]"},
		"not for users": {stream("RUN_STARTED", "STATE_SNAPSHOT snapshot {}", "STATE_DELTA delta []", "RAW event {}", "CUSTOM name PredictState value []", "MESSAGES_SNAPSHOT messages []",
			"THINKING_TEXT_MESSAGE_CONTENT delta hm", "REASONING_MESSAGE_CONTENT messageId r delta hm", "ACTIVITY_SNAPSHOT messageId x content {}", "STRANGE message {} delta []", "RUN_FINISHED"), "typing"},
		"form":         {stream(`CUSTOM name ui value {"uiId":"u","components":[{"type":"input","name":"n"}]}`, "RUN_FINISHED"), "[ui]"},
		"behind it":    {stream("RUN_FINISHED", "TEXT_MESSAGE_CHUNK messageId a delta A"), ""},
		"CRLF":         {strings.ReplaceAll(stream("TEXT_MESSAGE_CHUNK messageId a delta A", "RUN_FINISHED"), "\n", "\r\n"), "~A|A"},
		"CR":           {strings.ReplaceAll(stream("TEXT_MESSAGE_CHUNK messageId a delta A", "RUN_FINISHED"), "\n", "\r"), "~A|A"},
		"comments":     {": hello\n\n:\n" + stream("TEXT_MESSAGE_CHUNK messageId a delta A") + ": ping\n\nevent: x\nid: 1\nretry: 5\n" + stream("RUN_FINISHED"), "~A|A"},
		"several data": {"data: {\"type\":\ndata:\"TEXT_MESSAGE_CHUNK\",\"messageId\":\"a\",\ndata: \"delta\":\"A\"}\n\nid: 4\n\n" + stream("RUN_FINISHED"), "~A|A"},
		"BOM":          {"\ufeff" + stream("TEXT_MESSAGE_CHUNK messageId a delta A", "RUN_FINISHED"), "~A|A"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := readRun(t, c.events)
			if err != nil {
				t.Error(err)
			}
			s.want(t, c.want)
		})
	}
}

func TestRunBreaks(t *testing.T) {
	long := strings.Repeat("x", maxEvent)
	var many, open []string
	for i := range maxRunItems + 1 {
		many = append(many, fmt.Sprintf("TEXT_MESSAGE_START messageId %d", i), fmt.Sprintf("TEXT_MESSAGE_END messageId %d", i))
		open = append(open, fmt.Sprintf("TEXT_MESSAGE_START messageId %d", i))
	}
	var large []string
	for range maxRunBytes/500_000 + 1 {
		large = append(large, "TOOL_CALL_ARGS toolCallId t delta "+long[:500_000])
	}
	for name, c := range map[string]struct{ events, want, said string }{
		"no end":          {stream("RUN_STARTED", "TEXT_MESSAGE_CONTENT messageId a delta A"), "the stream ended after 2 events, expected RUN_FINISHED", "typing|~A"},
		"nothing":         {"", "the stream ended after 0 events", ""},
		"cut off":         {strings.TrimSuffix(stream("RUN_STARTED"), "\"}\n\n"), "after 0 events: ", ""},
		"RUN_ERROR":       {stream("TEXT_MESSAGE_CHUNK messageId a delta A", "RUN_ERROR message it_broke code E1"), `event 2: RUN_ERROR: the run failed: "it broke" (code "E1")`, "~A|A"},
		"RUN_ERROR, open": {stream("TEXT_MESSAGE_CONTENT messageId a delta A", "RUN_ERROR message it_broke"), `the run failed: "it broke"`, "~A"},
		"no JSON":         {"data: hello\n\n", "event 1: found no JSON object", ""},
		"no object":       {"data: []\n\n", "event 1: found no JSON object", ""},
		"no type":         {"data: {}\n\n", "event 1: type: absent", ""},
		"wrong type":      {`data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":{}}` + "\n\n", "event 1: TEXT_MESSAGE_CONTENT: ", ""},
		"no id":           {stream("TEXT_MESSAGE_START"), "TEXT_MESSAGE_START: found no id", ""},
		"no call":         {stream("TOOL_CALL_RESULT content x"), "toolCallId: found none", ""},
		"no form":         {stream("CUSTOM name ui value []"), "CUSTOM: value: found no JSON object", ""},
		"bad form":        {stream(`CUSTOM name ui value {"uiId":"u","components":[{"type":"radio","name":"n"}]}`), "CUSTOM: value: ", ""},
		"long event":      {stream("TEXT_MESSAGE_CHUNK messageId a delta " + long), "after 0 events: ", ""},
		"long line":       {"data: " + long + long, "after 0 events: ", ""},
		"many":            {stream(many...), "more than 1000 messages and tool calls in a run", ""},
		"many open":       {stream(open...), "more than 64 messages and tool calls at a time", ""},
		"too much":        {stream(large...), "more than 8388608 bytes in a run", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := readRun(t, c.events)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
				t.Errorf("%.300v, want %q", err, c.want)
			}
			s.want(t, c.said)
		})
	}
}

func TestRunMetadata(t *testing.T) {
	s, err := readRun(t, stream("STEP_STARTED stepName intent", "TEXT_MESSAGE_CHUNK messageId a delta A", "STEP_STARTED stepName execution", "TEXT_MESSAGE_CHUNK messageId b delta B",
		"STEP_FINISHED stepName execution", "STEP_FINISHED stepName intent", "TOOL_CALL_CHUNK toolCallId t toolCallName f delta {\"x\":1} metadata {\"stage\":\"tool_execution\"}",
		"TOOL_CALL_RESULT messageId m toolCallId t content ok", "TEXT_MESSAGE_START messageId c role system", "TEXT_MESSAGE_CONTENT messageId c delta C", "RUN_FINISHED"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []message.Meta{
		{"run_id": []byte(`"run-1"`), "stage": []byte(`"intent"`)},
		{"run_id": []byte(`"run-1"`), "stage": []byte(`"execution"`)},
		{"run_id": []byte(`"run-1"`), "stage": []byte(`"tool_execution"`), "mode": []byte(`"tool"`)},
		{"run_id": []byte(`"run-1"`), "mode": []byte(`"tool"`), "role": []byte(`"tool"`)},
		{"run_id": []byte(`"run-1"`), "role": []byte(`"system"`)},
	} {
		for key, value := range want {
			if got := s.messages[i].Meta[key]; string(got) != string(value) {
				t.Errorf("message %d: %s is %s, want %s", i, key, got, value)
			}
		}
		if _, ok := s.messages[i].Meta["stage"]; ok != (want["stage"] != nil) {
			t.Errorf("message %d has the stage %s", i, s.messages[i].Meta["stage"])
		}
	}
	call, err := message.As[message.ToolCallPart](s.messages[2].Parts[0])
	if err != nil || call.ToolCallID != "t" || call.ToolName != "f" || string(call.Input) != `{"x":1}` {
		t.Errorf("%+v, %v", call, err)
	}
	result, err := message.As[message.ToolResultPart](s.messages[3].Parts[0])
	if err != nil || result.ToolCallID != "t" || string(result.Output) != `"ok"` {
		t.Errorf("%+v, %v", result, err)
	}
}

// Whatever comes, a run ends, and says no more than it was told.
func FuzzRun(f *testing.F) {
	f.Add([]byte(stream("RUN_STARTED", "TEXT_MESSAGE_CHUNK messageId a delta A", "TOOL_CALL_START toolCallId t toolCallName f", "TOOL_CALL_RESULT toolCallId t content x", "RUN_FINISHED")))
	f.Add([]byte(stream(`CUSTOM name ui value {"uiId":"u","components":[]}`, "STEP_STARTED stepName s", "STEP_FINISHED stepName s", "RUN_ERROR message x")))
	f.Add([]byte("data: {\"type\":\r\ndata: \"RUN_FINISHED\"}\r\n\r\n"))
	f.Add([]byte(":\n\ndata:{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"\xff\",\"delta\":\"\\ud800\"}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := new(spoken)
		r := newRun(t.Context(), "run", s)
		err := r.read(strings.NewReader(string(body)))
		if err == nil != r.over {
			t.Errorf("over %v, %v", r.over, err)
		}
		for _, m := range s.messages {
			if m.Meta.String("run_id") != "run" || m.Text == "" && len(m.Parts) == 0 {
				t.Errorf("said %+v", m)
			}
			if _, err := json.Marshal(m.Parts); err != nil {
				t.Error(err)
			}
		}
	})
}
