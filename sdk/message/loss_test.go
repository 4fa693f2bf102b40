package message

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"text","text":" a "}`:                                                                  " a ",
		`{"type":"text-delta","delta":"a"}`:                                                             "a",
		`{"type":"markdown","markdown":"*a*"}`:                                                          "*a*",
		`{"type":"citation","title":"t","url":"u","snippet":"s"}`:                                       "t\ns\nu",
		`{"type":"citation","title":"t","url":"u"}`:                                                     "t\nu",
		`{"type":"suggestion-chips","chips":[{"label":"Yes","value":"y"},{"label":"No"}]}`:              "[Yes] [No]",
		`{"type":"product-carousel","products":[{"title":"Shoe"},{"price":1},{"name":"Hat"},5]}`:        "Shoe\nHat",
		`{"type":"order-summary","orderId":"o","items":[{"name":"Shoe"}],"subtotal":1,"total":"2 EUR"}`: "o\nShoe\n2 EUR",
		`{"type":"custom","payloadType":"bridge.card","data":{"header":{"title":"T"},"elements":[{"type":"note","text":"n"},{"type":"divider"},{"type":"select","placeholder":"Size","options":[{"text":"S"},{"text":"M"}]},{"type":"list_item","text":"x","button":{"text":"B"}}]}}`: "T\nn\nSize S | M\nx [B]",
		`{"type":"custom","payloadType":"bridge.buttons","data":{"text":"Choose","buttons":[[{"text":"A"}],[{"text":"B"}]]}}`:                                                                                                                                                         "Choose\n[A] [B]",
		`{"type":"custom","payloadType":"mine","data":{"title":"x"}}`:                                "x",
		`{"type":"custom","payloadType":"bridge.card","data":5}`:                                     "",
		`{"type":"tool-call","toolCallId":"1","toolName":"f","input":{"a": 1},"status":"requested"}`: `f({"a":1})`,
		`{"type":"tool-result","toolCallId":"1","toolName":"f","output":"done"}`:                     "f: done",
		`{"type":"tool-result","toolCallId":"1","toolName":"","output":null,"error":{"m":1}}`:        `{"m":1}`,
		`{"type":"file","fileName":"n","url":"u"}`:                                                   "n\nu",
		`{"type":"file","fileName":"n","path":"/p","caption":"c"}`:                                   "c",
		`{"type":"vision","kind":"output","mimeType":"m","data":"AAAA","altText":"a"}`:               "a",
		`{"type":"agent-transfer","status":"queued","targetAgent":"Ann"}`:                            "Ann: queued",
		`{"type":"diagnostic","category":"c","message":"secret","timestamp":1}`:                      "",
		`{"type":"error","code":"c","message":"secret","userMessage":"Sorry"}`:                       "Sorry",
		`{"type":"error","code":"c","message":"secret"}`:                                             "",
		`{"type":"ui","uiId":"f","components":[{"type":"heading","text":"You"},{"type":"input","name":"n","label":"Name"},{"type":"radio","name":"r","options":[{"value":"a","label":"A"},{"value":"b"}]}]}`: "You\n1. Name\n2. r (A | b)",
		`{"type":"ui_submit","uiId":"f","values":{"b":["x","y"],"a":"v","c":true}}`: "a: v\nb: [\"x\",\"y\"]\nc: true",
		`{"type":"intent-signal","intent":"i"}`:                                     "",
		`{"type":"hologram","text":"x"}`:                                            "",
		`{"type":"text","text":5}`:                                                  "",
	} {
		if got := parse(t, "["+raw+"]")[0].Plain(); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
	if got := (Part{}).Plain(); got != "" {
		t.Errorf("no part is %q", got)
	}
}

func TestBeside(t *testing.T) {
	p := parse(t, `[{"type":"vision","id":"p1","url":"u","width":1,"caption":null,"altText":""}]`)[0]
	if got := strings.Join(p.Beside("url"), " "); got != "altText width" {
		t.Errorf("got %q", got)
	}
	if got := (Part{}).Beside(); got != nil {
		t.Errorf("no part has %q", got)
	}
}

func TestLossAsJSON(t *testing.T) {
	b, err := json.Marshal(Loss{Part: -1, From: "text", To: LossNone, Reason: "r"})
	if want := `{"part":-1,"from":"text","to":"none","reason":"r"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}
