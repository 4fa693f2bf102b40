package bridge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestNegotiation(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("n", func(c *ledger.Channel) {
		c.Accept, c.Profile = []string{"buttons", "parts", "stream", "ack"}, ledger.Profile{MaxText: 40, MaxButtons: 3}
	})
	for name, tt := range map[string]struct{ frame, want string }{
		"1.1": {
			hosttest.RegisterFrame11(row, "card buttons parts ack telepathy"),
			`{"type":"register_ack","ok":true,"protocol":"1.1","channel":{"id":"` + row.ID + `","name":"n"},"capabilities":["text","buttons","ack","parts"],"limits":{"max_frame_bytes":262144,"ping_interval_ms":54000,"window":64,"max_upload_bytes":26214400,"ack_timeout_ms":60000,"silence_timeout_ms":1800000}}`,
		},
		"newer": {
			strings.Replace(hosttest.RegisterFrame11(row, ""), `"1.1"`, `"2.7"`, 1),
			`{"type":"register_ack","ok":true,"protocol":"1.1","channel":{"id":"` + row.ID + `","name":"n"},"capabilities":["text"],"limits":{"max_frame_bytes":262144,"ping_interval_ms":54000,"window":64,"max_upload_bytes":26214400,"silence_timeout_ms":1800000}}`,
		},
		"1.0":     {strings.Replace(hosttest.RegisterFrame11(row, "parts"), `"1.1"`, `"1.0"`, 1), hosttest.AckOK},
		"none":    {hosttest.RegisterFrame(hosttest.TokenOf("n"), "parts", "telepathy"), hosttest.AckOK},
		"no name": {strings.Replace(hosttest.RegisterFrame11(row, "parts"), `"1.1"`, `11`, 1), hosttest.AckOK},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.Dial(t, hosttest.Credentials{})
			c.Send(tt.frame)
			c.Want(tt.want)
			c.Send(hosttest.Say("c", "!caps"))
			if caps := c.NextSent(map[bool]string{true: "send_parts", false: "send"}[name == "1.1"]).Text; !strings.HasPrefix(caps, "caps: text") {
				t.Errorf("answered %q", caps)
			}
		})
	}

	// What does not count is shown to the operator; so is who said what.
	c := h.Dial(t, hosttest.Credentials{})
	c.Send(hosttest.RegisterFrame11(row, "card ack parts telepathy", `"profile":{"max_text":20,"markdown":"basic"}`))
	c.MustNext()
	got, _ := h.Hub.Attached(row.Key)
	if fmt.Sprint(got.Declared, " ", got.Unknown, " ", got.Effective, " ", got.Protocol) != "[card ack parts telepathy] [telepathy] text,ack,parts 1.1" {
		t.Errorf("shown as %+v", got)
	}
}

// Of a register frame of 1.1 that is refused the adapter is told the field, what was found
// and what is allowed; one of 1.0 sees what it always saw.
func TestRegisterRefused(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("c")
	for field, want := range map[string]string{
		`"profile":{"max_text":"long"}`:             "wrong_type: profile.max_text: found a string, expected an integer from 0 to 1000000",
		`"profile":{"max_text":1000001}`:            "wrong_type: profile.max_text: found 1000001, expected an integer from 0 to 1000000",
		`"profile":{"max_buttons":10001}`:           "wrong_type: profile.max_buttons: found 10001, expected an integer from 0 to 10000",
		`"profile":{"in_flight":100}`:               "wrong_type: profile.in_flight: found 100, expected an integer from 0 to 64",
		`"profile":{"edit_interval_ms":-1}`:         "wrong_type: profile.edit_interval_ms: found -1, expected an integer from 0 to 3600000",
		`"profile":{"edit_interval_ms":1000000000}`: "wrong_type: profile.edit_interval_ms: found 1000000000, expected an integer from 0 to 3600000",
		`"profile":{"parallel":1.5}`:                "wrong_type: profile.parallel: found 1.5, expected an integer from 0 to 100000",
		`"profile":{"markdown":"html"}`:             `wrong_type: profile.markdown: found "html", expected none, basic or full`,
		`"profile":[]`:                              "wrong_type: profile: found an array, expected an object",
		`"metadata":7`:                              "wrong_type: metadata: found a number, expected an object",
	} {
		c := h.Dial(t, hosttest.Credentials{})
		c.Send(hosttest.RegisterFrame11(row, "", field))
		c.Want(`{"type":"register_ack","ok":false,"error":` + hosttest.Quote(want) + `}`)
		c.WantClose(1008, wire.RefusedFirstFrame)
		if !wire.RefusedForGood(want) {
			t.Errorf("an adapter would try again after %s", want)
		}
	}
	for _, frame := range []string{
		`{"type":"register","token":"x","platform":7}`, `{"type":"register","protocol":"1.0","metadata":7}`, `{"type":"register","protocol":7,"capabilities":7}`,
		`{"type":"message","protocol":"1.1","text":"x"}`, `{"type":"register","protocol":"1.1"`,
	} {
		c := h.Dial(t, hosttest.Credentials{})
		c.Send(frame)
		c.Want(hosttest.AckFailed(wire.RefusedFirstFrame))
		c.WantClose(1008, wire.RefusedFirstFrame)
	}
}

// The operator's profile goes before the adapter's, field by field.
func TestProfileOf11(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("p", func(c *ledger.Channel) { c.Profile = ledger.Profile{MaxText: 12} })
	c := h.Attach11(t, row, "buttons", `"profile":{"max_text":5,"max_buttons":2}`)
	h.MustSend(row, "c", "twelve runes and more")
	first, second := c.NextSent("send"), c.NextSent("send")
	if first.Text != "twelve runes" || second.Text != "and more" || second.MessageID != first.MessageID+"/2" {
		t.Errorf("cut into %+v and %+v", first, second)
	}
	h.Operator("POST", "/channels/p/messages", `{"conversation_id":"c","text":"Pick","buttons":[[{"text":"a","value":"a"},{"text":"b","value":"b"},{"text":"c","value":"c"}]]}`, 202)
	if f := c.NextSent("send"); f.Text != "Pick\n[a] [b]" {
		t.Errorf("three buttons of two came as %+v", f)
	}
}

// Of a field that looks like a known one the adapter is told, once a connection and name;
// the frame counts without it. One of 1.0 may have any fields.
func TestTyposAreTold(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("c")
	c := h.Dial(t, hosttest.Credentials{})
	c.Send(hosttest.RegisterFrame11(row, "", `"capabilitie":["card"]`, `"profile":{"max_txt":100}`))
	var ack wire.RegisterAck
	c.Read(&ack)
	want := []string{wire.Typo{Found: "capabilitie", Meant: "capabilities"}.String(), wire.Typo{Found: "profile.max_txt", Meant: "profile.max_text"}.String()}
	if !ack.OK || !slices.Equal(ack.Warnings, want) {
		t.Errorf("acknowledged with %+v, want the warnings %q", ack, want)
	}
	for i := range 2 {
		c.Send(`{"type":"message","conversationId":"c","text":"hi","message_id":"m` + fmt.Sprint(i) + `"}`)
		if i == 0 {
			c.WantError("unknown_field", "", "conversationId: found an unknown field, which is ignored; is conversation_id meant?")
		}
		if f := c.NextSent("send"); f.Text != "echo: hi" || f.ConversationID != "" {
			t.Errorf("answered %+v", f)
		}
	}
	c = h.Dial(t, hosttest.Credentials{})
	c.Send(strings.Replace(hosttest.RegisterFrame11(row, ""), `"1.1"`, `1.1`, 1))
	if c.Read(&ack); ack.Protocol != "1.1" {
		t.Errorf("1.1 as a number is acknowledged with %+v", ack)
	}
	old := h.Attach(t, row)
	old.Send(`{"type":"message","session_key":"k","conversation_id":"c","conversationId":"d","text":"hi","reply_ctx":"r"}`)
	old.Want(hosttest.Answer("c", "echo: hi"))
}
