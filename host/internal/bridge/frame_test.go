package bridge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

const maxFrame = 262_144

// padded makes a frame of exactly n bytes: it fills the X in it.
func padded(frame string, n int) string {
	return strings.Replace(frame, "X", strings.Repeat("x", n-len(frame)+1), 1)
}

func TestFrameSize(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("size", hosttest.WithAgent(hub.AgentNone))
	register := `{"type":"register","token":` + hosttest.Quote(hosttest.TokenOf(row.Name)) + `,"metadata":{"pad":"X"}}`
	ways := map[string]func(c *hosttest.Client, text string){
		"whole":  func(c *hosttest.Client, text string) { c.Raw(hosttest.RawFrame(true, hosttest.OpText, text)) },
		"binary": func(c *hosttest.Client, text string) { c.Raw(hosttest.RawFrame(true, hosttest.OpBinary, text)) },
		"fragmented": func(c *hosttest.Client, text string) {
			c.Raw(hosttest.Fragments(hosttest.OpText, text, 5)...)
		},
		"last fragment of one byte": func(c *hosttest.Client, text string) {
			c.Raw(hosttest.RawFrame(false, hosttest.OpText, text[:len(text)-1]), hosttest.RawFrame(true, hosttest.OpPing, "p"), hosttest.RawFrame(true, hosttest.OpContinuation, text[len(text)-1:]))
		},
	}
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			c := h.Dial(t, hosttest.Credentials{})
			write(c, padded(register, maxFrame))
			c.Want(hosttest.AckOK)
			text := padded(hosttest.Say("c", "X"), maxFrame)
			before := len(h.History(row))
			write(c, text)
			c.Quiet()
			await.Until(t, "message is stored", func() bool { return len(h.History(row)) == before+1 })
			if got := h.History(row)[before]; !strings.Contains(text, `"`+got.Text+`"`) || len(got.Text) < maxFrame-200 {
				t.Errorf("stored %d bytes of text", len(got.Text))
			}
			write(c, padded(hosttest.Say("c", "X"), maxFrame+1))
			c.WantClose(1009, "")

			c = h.Dial(t, hosttest.Credentials{})
			write(c, padded(register, maxFrame+1))
			c.WantClose(1009, "")
			if n := len(h.History(row)); n != before+1 {
				t.Errorf("%d messages are stored, want %d", n, before+1)
			}
		})
	}
	t.Run("announced only", func(t *testing.T) {
		c := h.Attach(t, row)
		c.Raw(hosttest.RawFrame(true, hosttest.OpText, strings.Repeat("x", maxFrame+1))[:20])
		c.WantClose(1009, "")
	})
}

// What waits behind a frame that is too large goes with the connection.
func TestFrameSizeEndsConnection(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("ends")
	c := h.Attach(t, row)
	c.Raw(hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "before")), hosttest.RawFrame(true, hosttest.OpText, strings.Repeat("x", maxFrame+1)), hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "behind")))
	for {
		if _, err := c.Next(); err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != 1009 {
				t.Fatalf("ended with %v, want 1009", err)
			}
			break
		}
	}
	await.Until(t, "adapter is detached", func() bool { return !h.Attached(row) })
	for _, e := range h.History(row) {
		if strings.Contains(e.Text, "behind") {
			t.Errorf("stored %q", hosttest.Line(e))
		}
	}
	h.Attach(t, row).Works()
}

// An answer larger than a frame comes in several frames.
func TestFrameSizeOfAnswer(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	c := h.Attach(t, h.Channel("split"))
	text := strings.TrimSpace(strings.Repeat("word ", 52_000))
	c.Send(hosttest.Say("c", text))
	var words []string
	for len(words) < 52_001 {
		got := c.MustNext()
		if len(got) > maxFrame {
			t.Fatalf("frame of %d bytes", len(got))
		}
		_, rest, ok := strings.Cut(got, hosttest.Routed("send", "c", `"text":"`)[:len(hosttest.Routed("send", "c", `"text":"`))-1])
		if !ok {
			t.Fatalf("read %.200s", got)
		}
		words = append(words, strings.Fields(strings.TrimSuffix(rest, `"}`))...)
	}
	if got := strings.Join(words, " "); got != "echo: "+text {
		t.Errorf("read %d words, %.40q …", len(words), got)
	}
	c.Works()
}

func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("utf8", hosttest.WithAgent(hub.AgentNone))
	const reason = "frame is not valid UTF-8"
	for name, bad := range map[string]string{
		"lone byte":       "\xff",
		"cut off":         "\xe2\x82",
		"overlong":        "\xc0\xaf",
		"surrogate":       "\xed\xa0\x80",
		"above the range": "\xf4\x90\x80\x80",
	} {
		text := strings.Replace(hosttest.Say("c", "X"), "X", bad, 1)
		if !strings.Contains(text, bad) {
			t.Fatal("the frame is not what it should be")
		}
		for kind, op := range map[string]byte{"text": hosttest.OpText, "binary": hosttest.OpBinary} {
			t.Run(name+" "+kind, func(t *testing.T) {
				c := h.Attach(t, row)
				c.Raw(hosttest.RawFrame(true, op, text))
				c.WantClose(1007, reason)
			})
			t.Run(name+" "+kind+" fragmented", func(t *testing.T) {
				c := h.Attach(t, row)
				c.Raw(hosttest.Fragments(op, text, len(text))...)
				c.WantClose(1007, reason)
			})
			t.Run(name+" "+kind+" before register", func(t *testing.T) {
				c := h.Dial(t, hosttest.Credentials{Header: http.Header{"X-Bridge-Token": {hosttest.TokenOf(row.Name)}}})
				c.Raw(hosttest.RawFrame(true, op, `{"type":"register","platform":"`+bad+`"}`))
				c.WantClose(1007, reason)
			})
		}
	}
	if n := len(h.History(row)); n != 0 {
		t.Errorf("%d messages are stored, want none", n)
	}
}

// A character may be cut by a fragment's end.
func TestCharacterAcrossFragments(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	c := h.Attach(t, h.Channel("cut"))
	text := hosttest.Say("c", "Grüße, 世界 🌉")
	c.Raw(hosttest.Fragments(hosttest.OpText, text, len(text))...)
	c.Want(hosttest.Answer("c", "echo: Grüße, 世界 🌉"))
}

func TestLeniency(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	c := h.Attach(t, h.Channel("lenient"))
	message := func(fields string) string {
		return `{"type":"message","session_key":"k","conversation_id":"c","reply_ctx":"r",` + fields + `}`
	}
	for name, tt := range map[string]struct{ frame, want string }{
		"lone high surrogate":        {message(`"text":"a\ud83cb"`), "a\ufffdb"},
		"lone low surrogate":         {message(`"text":"a\udf09b"`), "a\ufffdb"},
		"surrogates the wrong way":   {message(`"text":"\udf09\ud83c"`), "\ufffd\ufffd"},
		"a pair of surrogates":       {message(`"text":"\ud83c\udf09"`), "🌉"},
		"escapes":                    {message(`"text":"\u0041\/\"\\\n\t\u0001"`), "A/\"\\\n\t\x01"},
		"keys in another case":       {message(`"text":"right","Text":"wrong","TEXT":5,"Reply_Ctx":5,"Conversation_ID":"d"`), "right"},
		"unknown fields":             {message(`"text":"x","thread":{"id":[1,2,{}]},"ts":1e400,"flags":null`), "x"},
		"the last of equal keys":     {message(`"text":"first","text":"last"`), "last"},
		"null is absent":             {message(`"text":"x","user_id":null,"user_name":null,"message_id":null`), "x"},
		"message_id of another type": {message(`"text":"x","message_id":7`), "x"},
		"empty text":                 {message(`"text":""`), ""},
		"text of white space":        {message(`"text":" \n "`), " \n "},
		"byte order mark in text":    {message(`"text":"` + "\ufeff" + `x"`), "\ufeffx"},
		"a nul":                      {message(`"text":"a\u0000b"`), "a\x00b"},
		"odd spacing":                {"\n { \"text\"\t:\r\"x\" , \"type\" : \"message\",\"session_key\":\"k\" ,\"conversation_id\": \"c\", \"reply_ctx\" : \"r\" }\n\n", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Send(tt.frame)
			c.Want(hosttest.Answer("c", "echo: "+tt.want))
		})
	}
	t.Run("pong and register_ack are ignored", func(t *testing.T) {
		c.Send(`{"type":"pong"}`, hosttest.AckOK, hosttest.AckFailed("no"), `{"type":"pong","ok":5,"text":7}`)
		c.Works()
	})
	t.Run("binary", func(t *testing.T) {
		if err := c.WS.WriteMessage(websocket.BinaryMessage, []byte(hosttest.Say("c", "binary"))); err != nil {
			t.Fatal(err)
		}
		c.Want(hosttest.Answer("c", "echo: binary"))
	})
}
