package socketio

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestParsePacket(t *testing.T) {
	for raw, want := range map[string]packet{
		`0`:                   {kind: kindConnect, namespace: "/"},
		`0/ws/client,{"a":1}`: {kind: kindConnect, namespace: "/ws/client", data: json.RawMessage(`{"a":1}`)},
		`0/ws?token=x,`:       {kind: kindConnect, namespace: "/ws"},
		`1/ws,`:               {kind: kindDisconnect, namespace: "/ws"},
		`1/ws`:                {kind: kindDisconnect, namespace: "/ws"},
		`2["a",1]`:            {kind: kindEvent, namespace: "/", data: json.RawMessage(`["a",1]`)},
		`2/ws,12["a"]`:        {kind: kindEvent, namespace: "/ws", id: "12", data: json.RawMessage(`["a"]`)},
		`3/ws,0[]`:            {kind: kindAck, namespace: "/ws", id: "0", data: json.RawMessage(`[]`)},
	} {
		got, err := parsePacket(raw)
		if err != nil || got.kind != want.kind || got.namespace != want.namespace || got.id != want.id || string(got.data) != string(want.data) {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	for name, raw := range map[string]string{
		"errEmpty": ``, "errType": `7`, "errLetter": `x`, "errConnectError": `4/ws,{}`, "errBinary": `51-["a",{"_placeholder":true,"num":0}]`,
		"errJSON": `2["a"`, "errMore": `2["a"]x`, "errNamespace": `2/` + strings.Repeat("n", 200) + `,["a"]`, "errID": `2` + strings.Repeat("1", 20) + `["a"]`,
	} {
		if got, err := parsePacket(raw); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, raw := range map[string]string{
		"errNoArray": `2{"a":1}`, "errNothing": `2[]`, "errNumber": `2[1]`, "errNoData": `2`, "errNull": `2null`,
		"errName": `2["` + strings.Repeat("x", 200) + `"]`, "errArgs": `2["a",1,2,3,4,5,6,7,8,9]`,
	} {
		p, err := parsePacket(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, args, err := p.event(); err == nil {
			t.Errorf("%s: %s %s", name, got, args)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	for _, s := range []string{`0/ws/client,{"token":"x"}`, `2/ws,12["message",{"text":"a"}]`, `3[]`, `2["a",12345678901234567890.10]`, `51-[]`, "2/\x00,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePacket(s)
		if err != nil {
			return
		}
		_, args, _ := p.event()
		if len(args) > maxArgs {
			t.Fatalf("%d arguments", len(args))
		}
		again, err := parsePacket(string(p.append(nil)[1:]))
		if err != nil || again.kind != p.kind || again.namespace != p.namespace || again.id != p.id || !bytes.Equal(again.data, p.data) {
			t.Fatalf("%q: %+v came back as %+v, %v", s, p, again, err)
		}
	})
}
