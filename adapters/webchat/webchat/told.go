package webchat

import (
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// What happened around a conversation, in a line each.

// told shows what is a line.
func (r *reader) told(v message.View) {
	switch v := v.(type) {
	case message.ToolCallPart:
		r.tool(v.ToolCallID, v.ToolName, toolText(v.Status))
	case message.ToolResultPart:
		how := "Used %"
		if len(v.Error) > 0 && string(v.Error) != "null" {
			how = "% did not work"
		}
		r.tool(v.ToolCallID, v.ToolName, how)
	case message.TransferPart:
		r.said = true
		r.line(transferText(v))
	case message.MemoryApprovalPart:
		r.text(kindText, approvalText(v))
	case message.MemoryRecallPart:
		r.line("Looked up what is remembered: " + counted(len(v.Entries), "entry", "entries"))
	case message.ComputerUsePart:
		p := &piece{Kind: kindLine, Text: "Working in a browser" + inBrackets(v.State)}
		if checkURL(v.StreamURL) == nil {
			p.URL, r.said = v.StreamURL, true
		}
		r.beside(p)
	}
}

// tool says what became of a call, once for each call. % is the tool's name.
func (r *reader) tool(call, name, how string) {
	text := strings.Replace(how, "%", or(oneLine(name, maxLabel), "a tool"), 1)
	if call != "" {
		for _, before := range r.pieces {
			if before.Kind == kindLine && before.ref == call {
				before.Text = text
				return
			}
		}
	}
	r.beside(&piece{Kind: kindLine, Text: text, ref: call})
}

func toolText(s message.ToolStatus) string {
	switch s {
	case message.ToolRequested, message.ToolApproved, message.ToolExecuting, message.ToolAsyncPending:
		return "Using %…"
	case message.ToolAwaitingApproval, message.ToolPendingSupervisor:
		return "% waits to be allowed"
	case message.ToolDenied:
		return "% was not allowed"
	case message.ToolFailed, message.ToolTimedOut:
		return "% did not work"
	}
	return "Used %"
}

// transferText says who answers now, or is to. Statuses are the application's:
// what is not known to be another is taken for done.
func transferText(t message.TransferPart) string {
	who := or(oneLine(t.TargetAgent, maxLabel), "a person")
	text := "Now with " + who
	switch strings.ToLower(t.Status) {
	case "requested", "pending", "initiated", "queued", "waiting", "connecting", "in_progress":
		text = "Handing over to " + who
		if t.QueuePosition != nil {
			text += ", number " + strconv.FormatFloat(*t.QueuePosition, 'f', -1, 64) + " in the queue"
		}
	case "failed", "rejected", "declined", "denied", "cancelled", "canceled", "timeout", "timed_out", "unavailable", "error":
		text = "Handing over to " + who + " did not work"
	}
	if t.Reason != "" {
		text += ": " + t.Reason
	}
	return text
}

func endText(why message.EndReason) string {
	switch why {
	case message.EndTimeout:
		return "The conversation ended after a long pause."
	case message.EndError:
		return "The conversation ended with an error."
	case message.EndHandoffCompleted:
		return "The conversation was handed over."
	}
	return "The conversation has ended."
}

// approvalText shows of the payload only what is meant to be read.
func approvalText(m message.MemoryApprovalPart) string {
	verb := or(string(m.Operation), "save")
	text := "May I " + verb + " this in memory?"
	if m.Status != "" && m.Status != "pending" {
		text = "Memory: " + verb + ", " + m.Status
	}
	var what string
	if message.Sum(m.Payload) != "" && m.Payload[0] == '"' {
		what = message.Sum(m.Payload)
	} else {
		what = message.TextField(m.Payload, "text", "content", "value")
	}
	if what != "" {
		text += "\n" + what
	}
	return text
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + oneLine(s, maxLabel) + ")"
}
