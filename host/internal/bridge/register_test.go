package bridge_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

const errFirstFrame = "first frame must be type=register"

func TestFirstFrameRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("first")
	good := tokenOf(row.Name)
	register := func(rest string) string { return `{"type":"register","token":` + quote(good) + rest + `}` }
	current := h.attach(t, row)
	for name, first := range map[string]string{
		"not JSON":                  `register`,
		"cut off":                   `{"type":"register","token":` + quote(good),
		"array":                     `[` + register("") + `]`,
		"string":                    `"register"`,
		"null":                      `null`,
		"empty":                     ``,
		"white space":               "  \r\n",
		"byte order mark":           "\ufeff" + register(""),
		"trailing bytes":            register("") + "x",
		"two objects":               register("") + register(""),
		"no type":                   `{"token":` + quote(good) + `}`,
		"type in another case":      `{"Type":"register","token":` + quote(good) + `}`,
		"type's value in caps":      `{"type":"REGISTER","token":` + quote(good) + `}`,
		"type is a number":          `{"type":5,"token":` + quote(good) + `}`,
		"type is null":              `{"type":null,"token":` + quote(good) + `}`,
		"token is a number":         `{"type":"register","token":5}`,
		"token is an object":        `{"type":"register","token":{}}`,
		"platform is a number":      register(`,"platform":5`),
		"platform is an array":      register(`,"platform":["a"]`),
		"platform is too long":      register(`,"platform":"` + strings.Repeat("p", 4097) + `"`),
		"capabilities is a string":  register(`,"capabilities":"text"`),
		"capabilities is an object": register(`,"capabilities":{}`),
		"capabilities of numbers":   register(`,"capabilities":[1]`),
		"metadata is a string":      register(`,"metadata":"v1"`),
		"metadata is an array":      register(`,"metadata":[]`),
		"nested too deep":           register(`,"x":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)),
		"message":                   say("c", "hello"),
		"card_action":               press("c", "x"),
		"ping":                      `{"type":"ping"}`,
		"pong":                      `{"type":"pong"}`,
		"register_ack":              ackOK,
		"unknown type":              `{"type":"hello"}`,
		"frame of 1.1":              `{"type":"message_ack","message_id":"1","ok":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			// The token is right: the frame alone is to blame.
			c := h.dial(t, credentials{header: http.Header{"X-Bridge-Token": {good}}})
			c.send(first)
			c.want(ackFailed(errFirstFrame))
			c.wantClose(1008, errFirstFrame)
		})
	}
	t.Run("without a token", func(t *testing.T) {
		c := h.dial(t, credentials{})
		c.send(`{"type":"message"}`)
		c.want(ackFailed(errFirstFrame))
		c.wantClose(1008, errFirstFrame)
	})
	current.works() // none of them took its place
}

// The protocol has one answer for all of it; the host's log tells what is wrong.
func TestFirstFrameRefusedInTheLog(t *testing.T) {
	t.Parallel()
	h := start(t)
	good := tokenOf(h.channel("logged").Name)
	for rest, want := range map[string]string{
		`,"platform":5`: "code=wrong_type detail=platform: found a number, expected a string",
		`,"protocol":"1.1","profile":{"markdown":"html"}`: `code=wrong_type detail=profile.markdown: found "html", expected none, basic or full`,
		`,"capabilities":["text",7]`:                      "code=wrong_type detail=capabilities[1]: found a number, expected a string",
		`,"platform":"` + strings.Repeat("p", 4097) + `"`: "code=too_large detail=platform: found 4097 bytes, at most 4096 are allowed",
		`,"type":"message","text":"hello"`:                `code=unknown_type detail=type: found "message", expected register`,
		`,"token":{"secret":` + quote(good) + `}`:         "code=wrong_type detail=token: found an object, expected a string",
		`,"x":` + strings.Repeat("[", 10_001):             "code=too_deep detail=frame: nested deeper",
		`,"metadata":"v1"} {`:                             "code=bad_json detail=frame: ",
		`,"protocol":"1.1","profile":{"max_text":"many"}`: "code=wrong_type detail=profile.max_text: found a string, expected an integer",
	} {
		c := h.dial(t, credentials{})
		c.send(`{"type":"register","token":` + quote(good) + rest + `}`)
		c.want(ackFailed(errFirstFrame))
		c.wantClose(1008, errFirstFrame)
		if !h.log.has("adapter refused remote=", "reason="+errFirstFrame+" "+want) {
			t.Errorf("%.60s: the log does not say %q", rest, want)
		}
	}
	if h.log.has("", good) {
		t.Error("the log has the token")
	}
}

func TestFirstFrameAccepted(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("accepted")
	register := registerFrame(tokenOf(row.Name))
	t.Run("binary", func(t *testing.T) {
		c := h.dial(t, credentials{})
		if err := c.ws.WriteMessage(websocket.BinaryMessage, []byte(register)); err != nil {
			t.Fatal(err)
		}
		c.want(ackOK)
		c.works()
	})
	t.Run("fragmented", func(t *testing.T) {
		c := h.dial(t, credentials{})
		c.raw(fragments(opText, register, 7)...)
		c.want(ackOK)
		c.works()
	})
	t.Run("control frames between fragments", func(t *testing.T) {
		c := h.dial(t, credentials{})
		var pongs []string
		c.ws.SetPongHandler(func(data string) error {
			pongs = append(pongs, data)
			return nil
		})
		f := fragments(opBinary, register, 3)
		c.raw(f[0], frame(true, opPing, "one"), f[1], frame(true, opPong, "nobody asked"), frame(true, opPing, "two"), f[2])
		c.want(ackOK)
		if !slices.Equal(pongs, []string{"one", "two"}) {
			t.Errorf("pongs = %q", pongs)
		}
		f = fragments(opText, say("works", "does it work?"), 4)
		c.raw(f[0], f[1], frame(true, opPing, "three"), f[2], f[3])
		c.want(answer("works", "echo: does it work?"))
		if !slices.Equal(pongs, []string{"one", "two", "three"}) {
			t.Errorf("pongs = %q", pongs)
		}
	})
	t.Run("byte by byte", func(t *testing.T) {
		c := h.dial(t, credentials{})
		for _, b := range frame(true, opText, register) {
			c.raw([]byte{b})
		}
		c.want(ackOK)
		c.works()
	})
	t.Run("unknown fields, odd spacing, escaped keys", func(t *testing.T) {
		c := h.dial(t, credentials{})
		c.send("\r\n\t{ \"t\\u0079pe\" : \"regis\\u0074er\" ,\"extra\":{\"type\":\"x\"},\"Token\":7 , \"token\" :" + quote(tokenOf(row.Name)) + ",\"protocol\":\"1.0\"} \n")
		c.want(ackOK)
		c.works()
	})
}

func TestRegisterDefaults(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("defaults")
	for name, tt := range map[string]struct{ fields, platform, caps string }{
		"nothing":              {``, "defaults", "text"},
		"null":                 {`,"platform":null,"capabilities":null,"metadata":null`, "defaults", "text"},
		"empty":                {`,"platform":"","capabilities":[],"metadata":{}`, "defaults", "text"},
		"blank platform":       {`,"platform":" \t\r\n "`, "defaults", "text"},
		"without text":         {`,"platform":"irc","capabilities":["card"]`, "irc", "text,card"},
		"unknown, repeated":    {`,"platform":"irc","capabilities":["hologram","file","file","Card"]`, "irc", "text,file"},
		"capability of 1.1":    {`,"capabilities":["ack","stream","buttons"]`, "defaults", "text,buttons"},
		"metadata of any sort": {`,"metadata":{"version":"1.0.0","deep":[{}]}`, "defaults", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.dial(t, credentials{})
			c.send(`{"type":"register","token":` + quote(tokenOf(row.Name)) + tt.fields + `}`)
			c.want(ackOK)
			a, ok := h.hub.Attached(row.Key)
			if !ok || a.Platform != tt.platform || a.Effective.String() != tt.caps || a.Protocol != "1.0" {
				t.Errorf("attached as %q with %s, protocol %s, want %q with %s", a.Platform, a.Effective, a.Protocol, tt.platform, tt.caps)
			}
			if a.Remote == "" || a.Transport != "websocket" {
				t.Errorf("attached from %q over %q", a.Remote, a.Transport)
			}
			c.send(say("c", "!caps"))
			c.want(answer("c", "caps: "+tt.caps))
		})
	}
}

func TestRegisterTimeout(t *testing.T) {
	t.Parallel()
	if got := bridge.New(nil, nil, bridge.Options{}).RegisterTimeout; got != 10*time.Second {
		t.Errorf("default = %s, want 10 s", got)
	}
	h := start(t, func(s *setup) { s.bridge.RegisterTimeout = time.Second })
	row := h.channel("late")
	register := registerFrame(tokenOf(row.Name))
	t.Run("nothing", func(t *testing.T) {
		h.dial(t, credentials{}).wantClose(1008, "no register in time")
	})
	t.Run("half a frame and pings", func(t *testing.T) {
		c := h.dial(t, credentials{})
		c.raw(frame(false, opText, register[:10]), frame(true, opPing, ""), frame(true, opContinuation, register)[:5])
		c.wantClose(1008, "no register in time")
	})
	t.Run("registered in time", func(t *testing.T) {
		c := h.attach(t, row)
		eventually(t, "the timeout has passed for another", func() bool {
			other := h.dial(t, credentials{})
			other.wantClose(1008, "no register in time")
			return true
		})
		c.works()
	})
}

func TestSecondRegister(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("second")
	c := h.attach(t, row, "card")
	c.send(registerFrame(tokenOf(row.Name), "buttons"))
	c.wantError("already_registered", "", "register")
	c.send(`{"type":"register","message_id":"m1"}`)
	c.wantError("already_registered", "m1", "register")
	c.send(`{"type":"register","token":"wrong"}`)
	c.wantError("already_registered", "", "register")
	c.send(say("c", "!caps"))
	c.want(answer("c", "caps: text,card"))
}

func TestPipelined(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"echo", "slow"} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			row := h.channel("pipelined")
			if name == "slow" {
				slow := newSlowEcho()
				h = h.again(agents(map[string]hub.Agent{"slow": slow}))
				row.Agent = "slow"
				if _, err := h.store.UpdateChannel(t.Context(), row, ledger.Change{Actor: "test", Action: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			c := h.dial(t, credentials{})
			all := [][]byte{frame(true, opText, registerFrame(tokenOf(row.Name)))}
			want := []string{ackOK}
			for i := range 40 {
				text := fmt.Sprint(i)
				all = append(all, frame(true, opText, say("c", "text "+text)))
				want = append(want, answer("c", name+": text "+text))
			}
			c.raw(bytes.Join(all, nil))
			c.want(want...)
		})
	}
}
