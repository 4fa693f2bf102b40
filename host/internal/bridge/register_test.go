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
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

const errFirstFrame = "first frame must be type=register"

func TestFirstFrameRefused(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("first")
	good := hosttest.TokenOf(row.Name)
	register := func(rest string) string { return `{"type":"register","token":` + hosttest.Quote(good) + rest + `}` }
	current := h.Attach(t, row)
	for name, first := range map[string]string{
		"not JSON":                  `register`,
		"cut off":                   `{"type":"register","token":` + hosttest.Quote(good),
		"array":                     `[` + register("") + `]`,
		"string":                    `"register"`,
		"null":                      `null`,
		"empty":                     ``,
		"white space":               "  \r\n",
		"byte order mark":           "\ufeff" + register(""),
		"trailing bytes":            register("") + "x",
		"two objects":               register("") + register(""),
		"no type":                   `{"token":` + hosttest.Quote(good) + `}`,
		"type in another case":      `{"Type":"register","token":` + hosttest.Quote(good) + `}`,
		"type's value in caps":      `{"type":"REGISTER","token":` + hosttest.Quote(good) + `}`,
		"type is a number":          `{"type":5,"token":` + hosttest.Quote(good) + `}`,
		"type is null":              `{"type":null,"token":` + hosttest.Quote(good) + `}`,
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
		"message":                   hosttest.Say("c", "hello"),
		"card_action":               hosttest.Press("c", "x"),
		"ping":                      `{"type":"ping"}`,
		"pong":                      `{"type":"pong"}`,
		"register_ack":              hosttest.AckOK,
		"unknown type":              `{"type":"hello"}`,
		"frame of 1.1":              `{"type":"message_ack","message_id":"1","ok":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			// The token is right: the frame alone is to blame.
			c := h.Dial(t, hosttest.Credentials{Header: http.Header{"X-Bridge-Token": {good}}})
			c.Send(first)
			c.Want(hosttest.AckFailed(errFirstFrame))
			c.WantClose(1008, errFirstFrame)
		})
	}
	t.Run("without a token", func(t *testing.T) {
		c := h.Dial(t, hosttest.Credentials{})
		c.Send(`{"type":"message"}`)
		c.Want(hosttest.AckFailed(errFirstFrame))
		c.WantClose(1008, errFirstFrame)
	})
	current.Works() // none of them took its place
}

// Protocol 1.0 has one answer for all of it; the host's log tells what is wrong.
func TestFirstFrameRefusedInTheLog(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	good := hosttest.TokenOf(h.Channel("logged").Name)
	for rest, want := range map[string]string{
		`,"platform":5`: "code=wrong_type detail=platform: found a number, expected a string",
		`,"protocol":"1.1","profile":{"markdown":"html"}`:  `code=wrong_type detail=profile.markdown: found "html", expected none, basic or full`,
		`,"capabilities":["text",7]`:                       "code=wrong_type detail=capabilities[1]: found a number, expected a string",
		`,"platform":"` + strings.Repeat("p", 4097) + `"`:  "code=too_large detail=platform: found 4097 bytes, at most 4096 are allowed",
		`,"type":"message","text":"hello"`:                 `code=unknown_type detail=type: found "message", expected register`,
		`,"token":{"secret":` + hosttest.Quote(good) + `}`: "code=wrong_type detail=token: found an object, expected a string",
		`,"x":` + strings.Repeat("[", 10_001):              "code=too_deep detail=frame: nested deeper",
		`,"metadata":"v1"} {`:                              "code=bad_json detail=frame: ",
		`,"protocol":"1.1","profile":{"max_text":"many"}`:  "code=wrong_type detail=profile.max_text: found a string, expected an integer",
	} {
		c := h.Dial(t, hosttest.Credentials{})
		c.Send(`{"type":"register","token":` + hosttest.Quote(good) + rest + `}`)
		if strings.Contains(rest, `"1.1"`) { // which says what is wrong: see TestRegisterRefused
			c.MustNext()
		} else {
			c.Want(hosttest.AckFailed(errFirstFrame))
		}
		c.WantClose(1008, errFirstFrame)
		if !h.Log.Has("adapter refused remote=", "reason="+errFirstFrame+" "+want) {
			t.Errorf("%.60s: the log does not say %q", rest, want)
		}
	}
	if h.Log.Has("", good) {
		t.Error("the log has the token")
	}
}

func TestFirstFrameAccepted(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("accepted")
	register := hosttest.RegisterFrame(hosttest.TokenOf(row.Name))
	t.Run("binary", func(t *testing.T) {
		c := h.Dial(t, hosttest.Credentials{})
		if err := c.WS.WriteMessage(websocket.BinaryMessage, []byte(register)); err != nil {
			t.Fatal(err)
		}
		c.Want(hosttest.AckOK)
		c.Works()
	})
	t.Run("fragmented", func(t *testing.T) {
		c := h.Dial(t, hosttest.Credentials{})
		c.Raw(hosttest.Fragments(hosttest.OpText, register, 7)...)
		c.Want(hosttest.AckOK)
		c.Works()
	})
	t.Run("control frames between fragments", func(t *testing.T) {
		c := h.Dial(t, hosttest.Credentials{})
		var pongs []string
		c.WS.SetPongHandler(func(data string) error {
			pongs = append(pongs, data)
			return nil
		})
		f := hosttest.Fragments(hosttest.OpBinary, register, 3)
		c.Raw(f[0], hosttest.RawFrame(true, hosttest.OpPing, "one"), f[1], hosttest.RawFrame(true, hosttest.OpPong, "nobody asked"), hosttest.RawFrame(true, hosttest.OpPing, "two"), f[2])
		c.Want(hosttest.AckOK)
		if !slices.Equal(pongs, []string{"one", "two"}) {
			t.Errorf("pongs = %q", pongs)
		}
		f = hosttest.Fragments(hosttest.OpText, hosttest.Say("works", "does it work?"), 4)
		c.Raw(f[0], f[1], hosttest.RawFrame(true, hosttest.OpPing, "three"), f[2], f[3])
		c.Want(hosttest.Answer("works", "echo: does it work?"))
		if !slices.Equal(pongs, []string{"one", "two", "three"}) {
			t.Errorf("pongs = %q", pongs)
		}
	})
	t.Run("byte by byte", func(t *testing.T) {
		c := h.Dial(t, hosttest.Credentials{})
		for _, b := range hosttest.RawFrame(true, hosttest.OpText, register) {
			c.Raw([]byte{b})
		}
		c.Want(hosttest.AckOK)
		c.Works()
	})
	t.Run("unknown fields, odd spacing, escaped keys", func(t *testing.T) {
		c := h.Dial(t, hosttest.Credentials{})
		c.Send("\r\n\t{ \"t\\u0079pe\" : \"regis\\u0074er\" ,\"extra\":{\"type\":\"x\"},\"Token\":7 , \"token\" :" + hosttest.Quote(hosttest.TokenOf(row.Name)) + ",\"protocol\":\"1.0\"} \n")
		c.Want(hosttest.AckOK)
		c.Works()
	})
}

func TestRegisterDefaults(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("defaults")
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
			c := h.Dial(t, hosttest.Credentials{})
			c.Send(`{"type":"register","token":` + hosttest.Quote(hosttest.TokenOf(row.Name)) + tt.fields + `}`)
			c.Want(hosttest.AckOK)
			a, ok := h.Hub.Attached(row.Key)
			if !ok || a.Platform != tt.platform || a.Effective.String() != tt.caps || a.Protocol != "1.0" {
				t.Errorf("attached as %q with %s, protocol %s, want %q with %s", a.Platform, a.Effective, a.Protocol, tt.platform, tt.caps)
			}
			if a.Remote == "" || a.Transport != "websocket" {
				t.Errorf("attached from %q over %q", a.Remote, a.Transport)
			}
			c.Send(hosttest.Say("c", "!caps"))
			c.Want(hosttest.Answer("c", "caps: "+tt.caps))
		})
	}
}

func TestRegisterTimeout(t *testing.T) {
	t.Parallel()
	if got := bridge.New(nil, nil, bridge.Options{}).RegisterTimeout; got != 10*time.Second {
		t.Errorf("default = %s, want 10 s", got)
	}
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Bridge.RegisterTimeout = time.Second })
	row := h.Channel("late")
	register := hosttest.RegisterFrame(hosttest.TokenOf(row.Name))
	t.Run("nothing", func(t *testing.T) {
		h.Dial(t, hosttest.Credentials{}).WantClose(1008, "no register in time")
	})
	t.Run("half a frame and pings", func(t *testing.T) {
		c := h.Dial(t, hosttest.Credentials{})
		c.Raw(hosttest.RawFrame(false, hosttest.OpText, register[:10]), hosttest.RawFrame(true, hosttest.OpPing, ""), hosttest.RawFrame(true, hosttest.OpContinuation, register)[:5])
		c.WantClose(1008, "no register in time")
	})
	t.Run("registered in time", func(t *testing.T) {
		c := h.Attach(t, row)
		await.Until(t, "the timeout has passed for another", func() bool {
			other := h.Dial(t, hosttest.Credentials{})
			other.WantClose(1008, "no register in time")
			return true
		})
		c.Works()
	})
}

func TestSecondRegister(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("second")
	c := h.Attach(t, row, "card")
	c.Send(hosttest.RegisterFrame(hosttest.TokenOf(row.Name), "buttons"))
	c.WantError("already_registered", "", "register")
	c.Send(`{"type":"register","message_id":"m1"}`)
	c.WantError("already_registered", "m1", "register")
	c.Send(`{"type":"register","token":"wrong"}`)
	c.WantError("already_registered", "", "register")
	c.Send(hosttest.Say("c", "!caps"))
	c.Want(hosttest.Answer("c", "caps: text,card"))
}

func TestPipelined(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"echo", "slow"} {
		t.Run(name, func(t *testing.T) {
			h := hosttest.Start(t)
			row := h.Channel("pipelined")
			if name == "slow" {
				slow := hosttest.NewSlowEcho()
				h = h.Again(hosttest.WithAgents(map[string]hub.Agent{"slow": slow}))
				row.Agent = "slow"
				if _, err := h.Store.UpdateChannel(t.Context(), row, ledger.Change{Actor: "test", Action: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			c := h.Dial(t, hosttest.Credentials{})
			all := [][]byte{hosttest.RawFrame(true, hosttest.OpText, hosttest.RegisterFrame(hosttest.TokenOf(row.Name)))}
			want := []string{hosttest.AckOK}
			for i := range 40 {
				text := fmt.Sprint(i)
				all = append(all, hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "text "+text)))
				want = append(want, hosttest.Answer("c", name+": text "+text))
			}
			c.Raw(bytes.Join(all, nil))
			c.Want(want...)
		})
	}
}
