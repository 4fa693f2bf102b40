package console

import "github.com/pontoon-bridge/pontoon/host/internal/api"

// What the console says of a message's delivery: the words that operators read in
// place of the names of states and reasons. The one table of them.

// saying explains a state or a reason.
type saying struct {
	Word string // as short as a badge
	Mean string // what it says about the message
	Next string // what an operator can do, or what happens by itself; "" = nothing is to be done
	Tone tone
}

// states explains every ledger.State.
var states = map[string]saying{
	"received":  {"Received", "The message is on the disk. Its turn has not ended: the agent has it, or it waits for the agent.", "It goes on by itself.", waiting},
	"handled":   {"Handled", "The turn is over: the agent answered, or had nothing to say.", "", good},
	"queued":    {"Queued", "The message is on the disk and waits to be written to the adapter.", "It is written when its turn comes and an adapter is attached.", waiting},
	"sent":      {"Sent", "The message was written to the adapter.", "An adapter with the capability ack says what became of it: its word follows by itself. One without can't say more.", idle},
	"delivered": {"Delivered", "The platform took the message, as the adapter says.", "", good},
	"failed":    {"Failed", "The message did not get through, and the host does not try again by itself.", "Mend what the reason names, then replay it.", fault},
	"expired":   {"Expired", "The message waited longer than the channel allows.", "Attach an adapter, then replay it if it is still worth sending.", warning},
}

// reasons explains every ledger.Reason.
var reasons = map[string]saying{
	"adapter_not_attached": {"No adapter", "No adapter was attached, and the channel keeps no queue.", "Attach an adapter, or turn the channel's queue on; then replay it.", fault},
	"rejected":             {"Refused", "The platform refused it, and would refuse it again, as the adapter says.", "Mend what it names, then replay it.", fault},
	"queue_full":           {"Queue full", "As many messages as the channel allows were waiting already.", "Find out why the adapter does not take them, or raise the channel's queue length; then replay it.", fault},
	"unknown_outcome":      {"Outcome unknown", "It broke off half-way: the platform may have shown the message.", "Look at the platform first. A replay may show it a second time.", warning},
	"retries_exhausted":    {"Gave up", "The adapter refused it for now, again and again, as often as the channel allows.", "When the platform takes messages again, replay it.", fault},
	"ttl":                  {"Waited too long", "Nobody took it for as long as a message may wait in this channel.", "Attach an adapter, then replay it; the channel's queue says how long messages wait.", warning},
	"frame_too_large":      {"Too large", "It does not fit into what the adapter can take, not even in its plainest form.", "Send something smaller: a replay fails in the same way.", fault},
	"agent_away":           {"Agent away", "The agent could not be reached for as long as a message may wait in this channel, or too many waited already.", "Bring the agent back, or give the channel another one; then replay it.", fault},
	"agent_timeout":        {"Agent too slow", "The agent had the message, as often as it may, and did not answer in the time that its settings give it.", "Find out what takes the agent so long, or raise its timeout; then replay it.", fault},
	"agent_refused":        {"Refused by the agent", "The agent, or what stands before it, did not take the message: its words are below.", "Mend what they name, such as its key or address; then replay it.", fault},
	"agent_failed":         {"Agent failed", "The agent did not get to an answer, or gave one that says nothing: its words are below.", "Mend the agent, then replay it.", fault},
}

// happenings explains what the story of a message is made of, beside states.
var happenings = map[string]string{
	"committed":           "Committed: it is on the disk",
	"replayed":            "An operator sent it again",
	"agent failed":        "The agent failed",
	"agent late":          "The agent did not answer in time",
	"ambiguous":           "The adapter can't say what became of it",
	"not shown as it was": "The platform could not show all of it",

	"refused":         "The adapter refused it, and would refuse it again",
	"refused for now": "The adapter refused it for now: it is tried again later",
	"session lost":    "The adapter's connection ended before it answered: it waits to be sent again",
	"sent once more":  "Sent once more, since the adapter did not answer",
	"waits":           "It waits for its agent",
}

// silenced is the reason rejected of what a user said: there is no platform that refused.
var silenced = saying{"Failed: refused", "This user may not speak in the channel.", "Who may speak is the channel's policy.", fault}

// wordsFor explains where a message stands.
func wordsFor(m api.Message) saying {
	if m.Direction == "in" && m.Reason == "rejected" {
		return silenced
	}
	if m.Direction == "in" && m.Reason == "unknown_outcome" { // as hosts of before called it
		return reasons["agent_failed"]
	}
	return wordsOf(m.State, m.Reason)
}

// refusedWith is what the adapter said last when it refused a message; "" = nothing.
func refusedWith(life api.Life) string {
	for i := len(life.Life) - 1; i >= 0; i-- {
		if e := life.Life[i]; e.What == "refused" || e.What == "refused for now" {
			return clip(e.Detail, 500)
		}
	}
	return ""
}

// refusedBy reports whether the adapter may have said why a message failed.
func refusedBy(m api.Message) bool {
	return m.Direction == "out" && m.State == "failed" && (m.Reason == "rejected" || m.Reason == "retries_exhausted")
}

// wordsOf explains a state with its reason. What is not in the tables is shown as
// it is: a newer host may have stored it.
func wordsOf(state, reason string) saying {
	s, ok := states[state]
	if !ok {
		s = saying{Word: state, Mean: "This host does not know the state.", Tone: idle}
	}
	if reason == "" {
		return s
	}
	why, ok := reasons[reason]
	if !ok {
		why = saying{Word: reason, Mean: "The host gave the reason " + reason + ".", Next: s.Next, Tone: s.Tone}
	}
	return saying{s.Word + ": " + lowerFirst(why.Word), why.Mean, why.Next, why.Tone}
}

// reasonWord names a reason, in as few words as a badge has.
func reasonWord(name string) string {
	if s, ok := reasons[name]; ok {
		return s.Word
	}
	return or(name, "Not known")
}

// happened is a step of a message's story in words.
func happened(what string) string {
	if said, ok := happenings[what]; ok {
		return said
	}
	if s, ok := states[what]; ok {
		return s.Word
	}
	return what
}

// sentTo says what a message that was written waits for, by the adapter that is
// attached; nil = none is.
func sentTo(a *api.Adapter) string {
	switch {
	case a == nil:
		return states["sent"].Next
	case has(a.Effective, "ack"):
		return "The adapter acknowledges, and has not yet: its word follows by itself."
	}
	return "The adapter does not acknowledge: nobody can say whether the platform took it."
}

// lowerFirst is an ASCII word as it is written within a sentence.
func lowerFirst(s string) string {
	if s != "" && s[0] >= 'A' && s[0] <= 'Z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}
