package framelog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestReduce(t *testing.T) {
	b64 := strings.Repeat("QUJD", 5000)
	for name, c := range map[string]struct{ in, want string }{
		"plain":       {`{"type":"message", "text":"hi","n":[1,-2.5e3,true,null,{}],"e":[]}`, `{"type":"message","text":"hi","n":[1,-2.5e3,true,null,{}],"e":[]}`},
		"token":       {`{"token":"pnt_abc","Password":"x","metadata":{"api_key":[1]}}`, `{"token":"‹string, 7 bytes, not shown›","Password":"‹string, 1 bytes, not shown›","metadata":{"api_key":"‹array, 3 bytes, not shown›"}}`},
		"escapedName": {`{"t\u006fken":"abc"}`, `{"t\u006fken":"‹string, 3 bytes, not shown›"}`},
		"tool":        {`{"parts":[{"type":"tool-call","toolName":"t","input":{"a":["secret"]}},{"arguments":"{\"a\":1}"}]}`, `{"parts":[{"type":"tool-call","toolName":"t","input":"‹object, 16 bytes, not shown›"},{"arguments":"‹string, 9 bytes, not shown›"}]}`},
		"data":        {`{"data":"` + b64 + `","url":"data:image/png;base64,` + b64 + `","text":"x"}`, `{"data":"‹base64, 20000 bytes, not shown›","url":"‹base64, 20022 bytes, not shown›","text":"x"}`},
		"signed":      {`{"url":"http://a.example/f?token=ab.c-d&x=1","text":"use pnt_Ab12 or Bearer zzz now"}`, `{"url":"http://a.example/f?token=…&x=1","text":"use pnt_… or Bearer … now"}`},
		"long":        {`{"text":"` + strings.Repeat("é", 1000) + `"}`, `{"text":"` + strings.Repeat("é", 256) + `… (2000 bytes)"}`},
		"escape":      {`{"text":"` + strings.Repeat("x", MaxText-3) + `\u00e9` + strings.Repeat("y", 100) + `"}`, `{"text":"` + strings.Repeat("x", MaxText-3) + `… (615 bytes)"}`},
		"scalar":      {` "x" `, `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, cut, ok := Reduce(nil, []byte(c.in), MaxFrame)
			if !ok || cut || string(out) != c.want || !json.Valid(out) {
				t.Errorf("%v %v\nfound    %s\nexpected %s", ok, cut, out, c.want)
			}
		})
	}
	for _, bad := range []string{``, `{`, `{"a":1,}`, `[1 2]`, `{"a"}`, `{"a":}`, `nonsense`, `{"a":1}x`, `"abc`, `"abc\"`, strings.Repeat("[", 100)} {
		if out, _, ok := Reduce([]byte("kept"), []byte(bad), MaxFrame); ok || string(out) != "kept" {
			t.Errorf("%s: %s, %v", bad, out, ok)
		}
	}
}

func TestReduceLarge(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, `,{"n":%d,"deep":[{"text":"some words"},{"token":"canary"}]}`, i)
	}
	out, cut, ok := Reduce(nil, []byte(`{"type":"message","parts":[`+b.String()[1:]+`],"text":"end"}`), MaxFrame)
	if !ok || !cut || !json.Valid(out) || len(out) > MaxFrame+2*MaxText || len(out) < MaxFrame/2 || bytes.Contains(out, []byte("canary")) {
		t.Errorf("%v %v, %d bytes: %s", ok, cut, len(out), out)
	}
}

// FuzzReduce: what comes out of JSON is JSON, not too large, and knows no secret.
func FuzzReduce(f *testing.F) {
	for _, s := range []string{`{"token":"canary","a":[{"input":{"x":"canary"}},"b\\\""]}`, `[[[]]]`, `{"a\"":"\u00e9"}`, `{"data":"` + strings.Repeat("canary", 40) + `"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, _, ok := Reduce(nil, in, 256)
		if !json.Valid(in) {
			return // it may be taken for JSON, which is looked at again where it is shown
		}
		if !ok {
			if depth(in) <= maxDepth {
				t.Fatalf("not taken: %s", in)
			}
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%s\nbecame no JSON: %s", in, out)
		}
		var v any
		if json.Unmarshal(out, &v) == nil {
			clean(t, v, in)
		}
	})
}

// clean looks for a value that must not be there.
func clean(t *testing.T, v any, in []byte) {
	switch v := v.(type) {
	case map[string]any:
		for name, of := range v {
			if s, ok := of.(string); secret[strings.ToLower(name)] && (!ok || !strings.HasPrefix(s, "‹")) && len(name) <= MaxText {
				t.Fatalf("%s: %s is shown: %v", in, name, of)
			}
			clean(t, of, in)
		}
	case []any:
		for _, of := range v {
			clean(t, of, in)
		}
	}
}

func depth(in []byte) int {
	d, most := 0, 0
	dec := json.NewDecoder(bytes.NewReader(in))
	for {
		tok, err := dec.Token()
		if err != nil {
			return most
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			d++
			most = max(most, d)
		case json.Delim('}'), json.Delim(']'):
			d--
		}
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 5, time.UTC)

func TestRing(t *testing.T) {
	b := NewBook()
	r := b.Ring(7)
	if r != b.Ring(7) || r == b.Ring(8) {
		t.Error("not one ring a channel")
	}
	_, more := r.After(0, 100)
	r.Record(noon, In, []byte(`{"type":"register","token":"pnt_canary"}`), Accepted, "", true)
	<-more
	if bytes.Contains(r.buf, []byte("canary")) {
		t.Error("the token is in memory")
	}
	r.Record(noon, In, []byte(`{"type":"nonsense","token":"x"}`), Refused, wire.CodeUnknownType, false)
	r.Record(noon, In, []byte(`{"text":"half`+"\x00"), Refused, wire.CodeBadJSON, false)
	r.Record(noon, Out, []byte(`{"type":"send","data":"`+strings.Repeat("A", 100_000)+`"}`), Written, "", false)
	r.Record(noon, In, []byte(strings.Repeat("x", 10_000)), Refused, wire.CodeBadJSON, false)
	r.Record(noon, In, []byte(`{"a":1,"token":"canary`), Refused, wire.CodeBadJSON, false)
	got, _ := r.After(0, 100)
	if len(got) != 6 {
		t.Fatalf("%d frames", len(got))
	}
	for i, want := range []Frame{
		{Seq: 1, Type: "register", Size: 40, JSON: []byte(`{"type":"register","token":"‹string, 10 bytes, not shown›"}`)},
		{Seq: 2, Type: "nonsense", Size: 31, Verdict: Refused, Code: "unknown_type", JSON: []byte(`{"type":"nonsense","token":"‹string, 1 bytes, not shown›"}`)},
		{Seq: 3, Size: 14, Verdict: Refused, Code: "bad_json", Text: "{\"text\":\"half\x00"},
		{Seq: 4, Type: "send", Direction: Out, Size: 100_025, Verdict: Written, JSON: []byte(`{"type":"send","data":"‹base64, 100000 bytes, not shown›"}`)},
		{Seq: 5, Size: 10_000, Verdict: Refused, Code: "bad_json", Text: strings.Repeat("x", 512), Cut: true},
		{Seq: 6, Size: 22, Verdict: Refused, Code: "bad_json", Text: `{"a":1,"token… (not shown)`},
	} {
		want.At = noon
		if g, w := fmt.Sprintf("%+v %s", got[i], got[i].JSON), fmt.Sprintf("%+v %s", want, want.JSON); g != w {
			t.Errorf("frame %d:\nfound    %s\nexpected %s", i+1, g, w)
		}
	}
	if got, _ := r.After(4, 100); len(got) != 2 || got[0].Seq != 5 {
		t.Errorf("behind 4: %+v", got)
	}
	if got, _ := r.After(0, 2); len(got) != 2 || got[0].Seq != 5 {
		t.Errorf("the newest two: %+v", got)
	}
	if got, _ := r.After(99, 100); len(got) != 6 {
		t.Errorf("behind what was never there: %d", len(got))
	}
	_, more = r.After(0, 1)
	b.Forget(7)
	<-more
	r.Record(noon, In, []byte(`{}`), Accepted, "", false)
	if got, _ := r.After(0, 100); len(got) != 0 || b.bytes.Load() != 0 {
		t.Errorf("forgotten: %+v, %d bytes", got, b.bytes.Load())
	}
}

// Whatever comes, the newest are there, whole and in order, and the ring stays small.
func TestRingStaysSmall(t *testing.T) {
	b := NewBook()
	r := b.Ring(1)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		n := rnd.IntN(300)
		if rnd.IntN(20) == 0 {
			n = rnd.IntN(6000)
		}
		if i == 15_000 {
			b.bytes.Add(budget) // others have much
		}
		r.Record(noon, In, fmt.Appendf(nil, `{"i":%d,"text":"%s"}`, i, strings.Repeat("x", n)), Accepted, "", false)
		if cap(r.buf) > maxRing+MaxFrame || len(r.buf) > cap(r.buf) {
			t.Fatalf("%d bytes", cap(r.buf))
		}
		if i%97 != 0 {
			continue
		}
		got, _ := r.After(0, 100)
		if len(got) == 0 || len(got) > Most || i > 1000 && i < 15_000 && len(got) < 10 {
			t.Fatalf("%d frames", len(got))
		}
		for k, f := range got {
			var v struct{ I int }
			if err := json.Unmarshal(f.JSON, &v); err != nil || v.I != i-len(got)+1+k || f.Seq != int64(v.I+1) {
				t.Fatalf("frame %d of %d: %s, %v", k, len(got), f.JSON, err)
			}
		}
	}
	if got := b.bytes.Load() - budget; got != int64(cap(r.buf)) {
		t.Errorf("%d bytes counted, %d there", got, cap(r.buf))
	}
	small := b.Ring(2)
	for range 100 {
		small.Record(noon, In, bytes.Repeat([]byte(" "), 500), Accepted, "", false)
	}
	if cap(small.buf) > maxCrowd {
		t.Errorf("over the budget a ring has %d bytes", cap(small.buf))
	}
	even := NewBook().Ring(1)
	for range 10_000 {
		even.Record(noon, In, []byte(`{"type":"message","text":"hi"}`), Accepted, "", false)
	}
	if got, _ := even.After(0, 100); len(got) != Most || cap(even.buf) > 8<<10 {
		t.Errorf("%d small frames in %d bytes", len(got), cap(even.buf))
	}
	large := b.Ring(3)
	for range 10 { // each by itself is more than a ring has then
		large.Record(noon, In, bytes.Repeat([]byte("x"), 100), Accepted, "", false)
		large.Record(noon, In, bytes.Repeat([]byte("x"), MaxFrame), Accepted, "", false)
		large.Record(noon, In, []byte(`{"data":"`+strings.Repeat("AAAA", MaxFrame)+`","n":[`+strings.Repeat("1,", MaxFrame)+`1]}`), Accepted, "", false)
	}
	if got, _ := large.After(0, 100); len(got) == 0 || got[len(got)-1].Seq != 30 || cap(large.buf) > 2*maxCrowd {
		t.Errorf("large ones: %d kept in %d bytes", len(got), cap(large.buf))
	}
}

func TestNoBook(t *testing.T) {
	var b *Book
	r := b.Ring(1)
	r.Record(noon, In, []byte(`{}`), Accepted, "", false)
	b.Forget(1)
	if got, more := r.After(0, 10); got != nil || more == nil {
		t.Error(got)
	}
}

func TestRingAtOnce(t *testing.T) {
	r := NewBook().Ring(1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				r.Record(noon, Out, []byte(`{"type":"send"}`), Written, "", false)
				r.After(0, 10)
			}
		})
	}
	wg.Wait()
	if got, _ := r.After(0, 100); got[len(got)-1].Seq != 2000 {
		t.Errorf("%d recorded", got[len(got)-1].Seq)
	}
}

func BenchmarkRecord(b *testing.B) {
	frame := []byte(`{"type":"message","session_key":"irc:#ops:alice","user_id":"alice","conversation_id":"c","reply_ctx":"m1","text":"` + strings.Repeat("x", 100) + `"}`)
	for name, f := range map[string][]byte{"200 bytes": frame, "256 KiB": []byte(`{"data":"` + strings.Repeat("A", 256<<10) + `"}`)} {
		b.Run(name, func(b *testing.B) {
			r := NewBook().Ring(1)
			b.ReportAllocs()
			for b.Loop() {
				r.Record(time.Now(), In, f, Accepted, "", false)
			}
		})
	}
}
