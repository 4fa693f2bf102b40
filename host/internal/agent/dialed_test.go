package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// scripted is an AG-UI agent whose events a test writes.
type scripted struct {
	begun  chan string // the body of each run
	events chan string // of it; "" = its connection breaks
	gone   chan struct{}
}

func newScripted(t *testing.T) (*scripted, hub.Agent) {
	s := &scripted{make(chan string, 1), make(chan string), make(chan struct{}, 1)}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	a, err := agent.NewAGUI(json.RawMessage(`{"url":"`+srv.URL+`","allow_private":true}`), safehttp.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return s, a
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.begun <- string(body)
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case e := <-s.events:
			if e == "" {
				panic(http.ErrAbortHandler)
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
			if strings.Contains(e, "RUN_FINISHED") {
				return
			}
		case <-r.Context().Done():
			s.gone <- struct{}{}
			return
		}
	}
}

func (s *scripted) says(t *testing.T, events ...string) {
	t.Helper()
	for _, e := range events {
		await.Give(t, "a run is under way", s.events, e)
	}
}

const (
	runFinished = `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`
	begins      = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
	ends        = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
)

func adds(delta string) string {
	return `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":` + hosttest.Quote(delta) + `}`
}

func TestAGUIRun(t *testing.T) {
	t.Parallel()
	s, a := newScripted(t)
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"model": a}))
	row := h.Channel("m", hosttest.WithAgent("model"))
	c := h.Attach11(t, row, "stream")

	c.Send(hosttest.Say("c", "go"))
	await.Value(t, "the run", s.begun)
	s.says(t, `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, begins, adds("one"))
	first := c.NextSent("stream")
	s.says(t, adds(" two"))
	if f := c.NextSent("stream"); f.Text != "one two" || f.MessageID != first.MessageID {
		t.Errorf("read %+v behind %+v", f, first)
	}
	// The call begins within the message: it waits for its end.
	s.says(t, `{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"f"}`, `{"type":"TOOL_CALL_END","toolCallId":"t"}`, ends)
	if f := c.NextSent("stream_end"); f.Text != "one two" || f.MessageID != first.MessageID {
		t.Errorf("read %+v", f)
	}
	s.says(t, `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"t","content":"/stop"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"second"}`)
	c.NextSent("stream")
	s.says(t, runFinished)
	if f := c.NextSent("stream_end"); f.Text != "second" || f.MessageID == first.MessageID {
		t.Errorf("read %+v", f)
	}
	h.WantHistory(row, "in handled go", "out sent one two", "out sent ", "out sent ", "out sent second")
	for i, e := range h.History(row)[1:] {
		var meta message.Meta
		if err := json.Unmarshal(e.Meta, &meta); err != nil || e.Status != ledger.StatusCompleted || e.ReplyTo == 0 || meta.String("run_id") == "" || (meta.String("mode") == "tool") != (i == 1 || i == 2) {
			t.Errorf("answer %d is kept as %+v with %s", i, e.Row, e.Meta)
		}
	}

	// The connection breaks: what was said stands, marked as broken.
	c.Send(hosttest.Say("c", "break"))
	if body := await.Value(t, "the run", s.begun); strings.Count(body, `"role":`) != 6 || !strings.Contains(body, `"toolCallId":"t"`) {
		t.Errorf("asked with %s", body)
	}
	s.says(t, begins, adds("half"))
	c.NextSent("stream")
	s.says(t, "")
	if f := c.NextSent("stream_end"); f.Text != "half" {
		t.Errorf("read %+v", f)
	}
	if apology := c.NextSent("send"); !strings.HasPrefix(apology.Text, "Sorry") {
		t.Errorf("read %+v", apology)
	}
	await.Until(t, "the question fails", func() bool { return h.Last(row, ledger.In).State == ledger.Failed })

	// The user stops it: the request ends, and nothing is broken.
	c.Send(hosttest.Say("c", "stop"))
	await.Value(t, "the run", s.begun)
	s.says(t, begins, adds("as far as"))
	c.NextSent("stream")
	c.Send(hosttest.Say("c", "/stop"))
	await.Value(t, "the end of the request", s.gone)
	await.Until(t, "the question is handled", func() bool {
		for _, e := range h.History(row) {
			if e.Text == "as far as" && e.Status == ledger.StatusCompleted {
				return true
			}
		}
		return false
	})
}

// A new message of the user ends the run that is under way, and makes another one
// that knows what was said.
func TestAGUIInterrupted(t *testing.T) {
	t.Parallel()
	s, a := newScripted(t)
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"model": a}))
	row := h.Channel("m", hosttest.WithAgent("model"))
	c := h.Attach11(t, row, "stream")
	c.Send(hosttest.Say("c", "first"))
	await.Value(t, "the run", s.begun)
	s.says(t, begins, adds("as far as"))
	c.NextSent("stream")
	c.Send(hosttest.Say("c", "second"))
	await.Value(t, "the end of the request", s.gone)
	if f := c.NextSent("stream_end"); f.Text != "as far as" {
		t.Errorf("read %+v", f)
	}
	if body := await.Value(t, "another run", s.begun); !strings.Contains(body, `"second"`) || !strings.Contains(body, `"as far as"`) {
		t.Errorf("asked with %s", body)
	}
	s.says(t, begins, adds("now"), ends, runFinished)
	var f hosttest.Sent
	for c.Read(&f); f.Type == "stream"; c.Read(&f) {
		f = hosttest.Sent{}
	}
	if f.Type != "stream_end" || f.Text != "now" {
		t.Errorf("read %+v", f)
	}
	h.WantHistory(row, "in handled first", "out sent as far as", "in handled second", "out sent now")
}

// An answer of a webhook may change an earlier message, and may come later by REST.
func TestWebhookTurns(t *testing.T) {
	t.Parallel()
	turns, answers := make(chan *agentwire.Turn, 1), make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f, err := agentwire.DecodeFromHost(body)
		if err != nil {
			t.Error(err)
		}
		turns <- f.Turn
		if a := <-answers; a != "" {
			_, _ = io.WriteString(w, a)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(srv.Close)
	config, _ := agent.FillWebhook(json.RawMessage(`{"url":"` + srv.URL + `","allow_private":true}`))
	a, err := agent.NewWebhook(config, safehttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"hook": a}))
	row := h.Channel("m", hosttest.WithAgent("hook"))
	c := h.Attach11(t, row, "update_message ack buttons")

	c.Send(hosttest.Say("c", "first"))
	await.Value(t, "the turn", turns)
	answers <- `{"text":"Which?","buttons":[[{"text":"Red","value":"r"}]]}`
	asked := c.NextSent("send_buttons")
	c.Send(`{"type":"message_ack","message_id":"` + asked.MessageID + `","ok":true,"preview_handle":"h1"}`)
	await.Until(t, "it is delivered", func() bool { return h.Last(row, ledger.Out).State == ledger.Delivered })

	c.Send(hosttest.Press("c", "r"))
	turn := await.Value(t, "the turn", turns)
	if turn.Text() != "r" || turn.Message.Metadata.String("action") != "r" || turn.Message.TurnIndex != 1 || turn.Message.SessionID == "" {
		t.Errorf("turn %+v", turn)
	}
	status, body := h.Ask("GET", "/channels/m/messages?conversation_id=c&cursor="+turn.HistoryCursor, "")
	var list struct{ Messages []struct{ Text string } }
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 || len(list.Messages) != 2 || list.Messages[1].Text != "first" {
		t.Errorf("history: %d %s, %v", status, body, err)
	}
	answers <- `{"text":"Red it is.","update":{"message_id":"` + asked.MessageID + `"}}`
	if f := c.NextSent("update_message"); f.Text != "Red it is." || f.PreviewHandle != "h1" {
		t.Errorf("read %+v", f)
	} else {
		c.Send(`{"type":"message_ack","message_id":"` + f.MessageID + `","ok":true}`)
	}

	c.Send(hosttest.Say("c", "later"))
	turn = await.Value(t, "the turn", turns)
	answers <- ""
	await.Until(t, "the turn ends", func() bool { return h.Last(row, ledger.In).State == ledger.Handled })
	h.Operator("POST", "/channels/m/messages", `{"conversation_id":"`+turn.ConversationID+`","text":"at last"}`, 202)
	if f := c.NextSent("send"); f.Text != "at last" {
		t.Errorf("read %+v", f)
	}
}

// What is said to a webhook that is not there waits for it.
func TestWebhookAway(t *testing.T) {
	t.Parallel()
	var there atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f, err := agentwire.DecodeFromHost(body)
		switch {
		case err != nil:
			t.Error(err)
		case !there.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = fmt.Fprintf(w, `{"text":%q}`, "heard: "+f.Turn.Text())
		}
	}))
	t.Cleanup(srv.Close)
	config, _ := agent.FillWebhook(json.RawMessage(`{"url":"` + srv.URL + `","allow_private":true,"attempts":1}`))
	a, err := agent.NewWebhook(config, safehttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"hook": a}), func(s *hosttest.Setup) { s.Retry = 200 * time.Millisecond })
	row := h.Channel("m", hosttest.WithAgent("hook"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("c", "one"), hosttest.Say("c", "two"))
	c.Want(hosttest.Answer("c", "The agent is not there just now; your message waits."))
	if !h.AgentAway("m") {
		t.Error("the channel's health does not say so")
	}
	there.Store(true)
	c.Want(hosttest.Answer("c", "heard: one"), hosttest.Answer("c", "heard: two"))
	await.Until(t, "it is back", func() bool { return !h.AgentAway("m") })
}
