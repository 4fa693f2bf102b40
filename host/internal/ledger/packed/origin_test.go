package packed

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

func FuzzOrigin(f *testing.F) {
	for _, o := range []ledger.Origin{
		{}, {SessionKey: "irc:#ops:alice", UserID: "alice", UserName: "Alice", ReplyCtx: `"m1"`}, {Agent: "echo"},
		{UserName: "\"\\\n\u00fc\u2028", ReplyCtx: `{"a": [1, null]}`}, {ReplyCtx: "0"},
	} {
		f.Add(AppendOrigin(nil, o))
	}
	f.Add([]byte(`{"user_id":"b","session_key":"a"}`))
	f.Add([]byte(`{"reply_ctx":1,"agent":"x"}`))
	f.Add([]byte("{\"user_id\":\"\xff\"}"))
	f.Add([]byte(`{"session_key":"a",}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		fast, ok := scanOrigin(string(b))
		if !ok {
			return
		}
		want, err := decodeOrigin(b)
		if err != nil {
			t.Fatalf("%q is taken as %+v, the library refuses it: %v", b, fast, err)
		}
		if fast != want {
			t.Fatalf("%q is taken as %+v, the library reads %+v", b, fast, want)
		}
	})
}
