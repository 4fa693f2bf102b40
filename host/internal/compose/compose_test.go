package compose

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func read(t *testing.T, raw string) Body {
	t.Helper()
	var b Body
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return b
}

func TestMessage(t *testing.T) {
	for raw, want := range map[string]struct {
		text  string
		types []string
	}{
		`{"text":"hello"}`: {"hello", nil},
		`{"text":""}`:      {"", nil},
		`{"text":"","image":{"url":"https://a.example.org/x.png"}}`:             {"", []string{"vision"}},
		`{"text":"pick","buttons":[[{"text":"A","value":"a"}]]}`:                {"pick\n[A]", []string{"custom"}},
		`{"text":"see","image":{"url":"https://a.example.org/x.png"}}`:          {"see", []string{"text", "vision"}},
		`{"card":{"elements":[{"type":"markdown","content":"hi"}]}}`:            {"hi", []string{"custom"}},
		`{"parts":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:     {"a\nb", []string{"text", "text"}},
		`{"text":"a","metadata":{"k":1},"parts":[{"type":"strange","text":1}]}`: {"", []string{"strange"}},
	} {
		m, err := read(t, raw).Message()
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		var types []string
		for _, p := range m.Parts {
			types = append(types, p.Type)
		}
		if want.text != "" && m.Text != want.text || !slices.Equal(types, want.types) || m.Role != message.RoleAgent {
			t.Errorf("%s: %q, %v, %s", raw, m.Text, types, m.Role)
		}
	}
}

func TestFaults(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`: "found no content", `{"text":null}`: "found no content", `{"metadata":{"k":1}}`: "found no content",
		`{"image":{"url":"ftp://x"}}`: "image.url: expected an http or https url", `{"file":{"url":"http://[::1"}}`: "file.url: expected an http or https url", `{"file":{"url":"https:///a"}}`: "file.url: expected an http", `{"file":{}}`: "file.url: expected",
		`{"buttons":[[{"value":"a"}]]}`: "buttons: ", `{"card":{"elements":[{"type":"select"}]}}`: "card: ",
	} {
		_, err := read(t, raw).Message()
		var f *Fault
		if !errors.As(err, &f) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", raw, err, want)
		}
	}
	var found message.Problems
	if _, err := read(t, `{"parts":[{"type":"file","fileName":"x","uploadStatus":"wrong"}]}`).Message(); !errors.As(err, &found) {
		t.Errorf("malformed part: %v", err)
	}
	if err := read(t, `{"text":"x","update":{}}`).Update.Check(); err == nil || !strings.HasPrefix(err.Error(), "update: ") {
		t.Error(err)
	}
}

func TestUpdateMarks(t *testing.T) {
	b := read(t, `{"text":"x","update":{"message_id":"m"}}`)
	m, err := b.Message()
	if err != nil || b.Update.Check() != nil {
		t.Fatal(err)
	}
	if b.Update.Mark(&m, "h"); m.Meta.String(message.MetaEdits) != "m" || m.Meta.String(message.MetaPreviewHandle) != "h" {
		t.Errorf("%v", m.Meta)
	}
}

func TestOnlyTyping(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"typing":true}`: true, `{"typing":false,"text":null}`: true, `{"typing":false,"text":""}`: false, `{"typing":true,"text":"x"}`: false, `{}`: false, `{"typing":true,"update":{}}`: false,
	} {
		if got := read(t, raw).OnlyTyping(); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func TestPaths(t *testing.T) {
	var got []string
	for _, p := range read(t, `{"image":{"path":"/a"},"file":{"path":"/b"},"parts":[{"type":"text","path":"/no"},{"type":"vision","path":"/c"}]}`).Paths() {
		got = append(got, p.At+"="+p.Path)
	}
	if want := []string{"image.path=/a", "file.path=/b", "parts[1].path=/c"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
