package bridge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
)

const maxFrame = 262_144

// padded makes a frame of exactly n bytes: it fills the X in it.
func padded(frame string, n int) string {
	return strings.Replace(frame, "X", strings.Repeat("x", n-len(frame)+1), 1)
}

func TestFrameSize(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("size", withAgent(hub.AgentNone))
	register := `{"type":"register","token":` + quote(tokenOf(row.Name)) + `,"metadata":{"pad":"X"}}`
	ways := map[string]func(c *client, text string){
		"whole":  func(c *client, text string) { c.raw(frame(true, opText, text)) },
		"binary": func(c *client, text string) { c.raw(frame(true, opBinary, text)) },
		"fragmented": func(c *client, text string) {
			c.raw(fragments(opText, text, 5)...)
		},
		"last fragment of one byte": func(c *client, text string) {
			c.raw(frame(false, opText, text[:len(text)-1]), frame(true, opPing, "p"), frame(true, opContinuation, text[len(text)-1:]))
		},
	}
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			c := h.dial(t, credentials{})
			write(c, padded(register, maxFrame))
			c.want(ackOK)
			text := padded(say("c", "X"), maxFrame)
			before := len(h.history(row))
			write(c, text)
			c.quiet()
			eventually(t, "message is stored", func() bool { return len(h.history(row)) == before+1 })
			if got := h.history(row)[before]; !strings.Contains(text, `"`+got.Text+`"`) || len(got.Text) < maxFrame-200 {
				t.Errorf("stored %d bytes of text", len(got.Text))
			}
			write(c, padded(say("c", "X"), maxFrame+1))
			c.wantClose(1009, "")

			c = h.dial(t, credentials{})
			write(c, padded(register, maxFrame+1))
			c.wantClose(1009, "")
			if n := len(h.history(row)); n != before+1 {
				t.Errorf("%d messages are stored, want %d", n, before+1)
			}
		})
	}
	t.Run("announced only", func(t *testing.T) {
		c := h.attach(t, row)
		c.raw(frame(true, opText, strings.Repeat("x", maxFrame+1))[:20])
		c.wantClose(1009, "")
	})
}

// What waits behind a frame that is too large goes with the connection.
func TestFrameSizeEndsConnection(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("ends")
	c := h.attach(t, row)
	c.raw(frame(true, opText, say("c", "before")), frame(true, opText, strings.Repeat("x", maxFrame+1)), frame(true, opText, say("c", "behind")))
	for {
		if _, err := c.next(); err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != 1009 {
				t.Fatalf("ended with %v, want 1009", err)
			}
			break
		}
	}
	eventually(t, "adapter is detached", func() bool { return !h.attached(row) })
	for _, e := range h.history(row) {
		if strings.Contains(e.Text, "behind") {
			t.Errorf("stored %q", line(e))
		}
	}
	h.attach(t, row).works()
}

// An answer larger than a frame comes in several frames.
func TestFrameSizeOfAnswer(t *testing.T) {
	t.Parallel()
	h := start(t)
	c := h.attach(t, h.channel("split"))
	text := strings.TrimSpace(strings.Repeat("word ", 52_000))
	c.send(say("c", text))
	var words []string
	for len(words) < 52_001 {
		got := c.mustNext()
		if len(got) > maxFrame {
			t.Fatalf("frame of %d bytes", len(got))
		}
		_, rest, ok := strings.Cut(got, routed("send", "c", `"text":"`)[:len(routed("send", "c", `"text":"`))-1])
		if !ok {
			t.Fatalf("read %.200s", got)
		}
		words = append(words, strings.Fields(strings.TrimSuffix(rest, `"}`))...)
	}
	if got := strings.Join(words, " "); got != "echo: "+text {
		t.Errorf("read %d words, %.40q …", len(words), got)
	}
	c.works()
}

func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("utf8", withAgent(hub.AgentNone))
	const reason = "frame is not valid UTF-8"
	for name, bad := range map[string]string{
		"lone byte":       "\xff",
		"cut off":         "\xe2\x82",
		"overlong":        "\xc0\xaf",
		"surrogate":       "\xed\xa0\x80",
		"above the range": "\xf4\x90\x80\x80",
	} {
		text := strings.Replace(say("c", "X"), "X", bad, 1)
		if !strings.Contains(text, bad) {
			t.Fatal("the frame is not what it should be")
		}
		for kind, op := range map[string]byte{"text": opText, "binary": opBinary} {
			t.Run(name+" "+kind, func(t *testing.T) {
				c := h.attach(t, row)
				c.raw(frame(true, op, text))
				c.wantClose(1007, reason)
			})
			t.Run(name+" "+kind+" fragmented", func(t *testing.T) {
				c := h.attach(t, row)
				c.raw(fragments(op, text, len(text))...)
				c.wantClose(1007, reason)
			})
			t.Run(name+" "+kind+" before register", func(t *testing.T) {
				c := h.dial(t, credentials{header: http.Header{"X-Bridge-Token": {tokenOf(row.Name)}}})
				c.raw(frame(true, op, `{"type":"register","platform":"`+bad+`"}`))
				c.wantClose(1007, reason)
			})
		}
	}
	if n := len(h.history(row)); n != 0 {
		t.Errorf("%d messages are stored, want none", n)
	}
}

// A character may be cut by a fragment's end.
func TestCharacterAcrossFragments(t *testing.T) {
	t.Parallel()
	h := start(t)
	c := h.attach(t, h.channel("cut"))
	text := say("c", "Grüße, 世界 🌉")
	c.raw(fragments(opText, text, len(text))...)
	c.want(answer("c", "echo: Grüße, 世界 🌉"))
}

func TestLeniency(t *testing.T) {
	t.Parallel()
	h := start(t)
	c := h.attach(t, h.channel("lenient"))
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
			c.send(tt.frame)
			c.want(answer("c", "echo: "+tt.want))
		})
	}
	t.Run("pong and register_ack are ignored", func(t *testing.T) {
		c.send(`{"type":"pong"}`, ackOK, ackFailed("no"), `{"type":"pong","ok":5,"text":7}`)
		c.works()
	})
	t.Run("binary", func(t *testing.T) {
		if err := c.ws.WriteMessage(websocket.BinaryMessage, []byte(say("c", "binary"))); err != nil {
			t.Fatal(err)
		}
		c.want(answer("c", "echo: binary"))
	})
}
