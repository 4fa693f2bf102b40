package console

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// bubble is a message as pages show it.
type bubble struct {
	api.Message
	Channel string // the channel's name
	Whole   bool   // on the page of its story: more of its text
	Refusal string // the adapter's words, of what it refused
	Placed  bool   // in a list of many conversations: it says where it was
}

// talkPath is the page of a conversation. Conversation ids are any text, so that
// they go into the query.
func talkPath(channel, conversation string) string {
	return Path + "conversations/" + url.PathEscape(channel) + "?c=" + url.QueryEscape(conversation)
}

func storyPath(id string) string { return Path + "messages/" + url.PathEscape(id) }

// who is the author as the platform, the agent or the host names it.
func (b bubble) who() string {
	switch {
	case b.Author != "":
		return clip(b.Author, 200)
	case b.is(message.MetaNotice):
		return "Pontoon"
	case b.Direction == "out":
		return strings.TrimSpace("Operator " + clip(b.Metadata.String(message.MetaSentBy), 200))
	}
	return "Somebody without a name"
}

// side says what the author is.
func (b bubble) side() string {
	switch {
	case b.Direction == "in":
		return "user"
	case b.is(message.MetaNotice):
		return "notice of the host"
	case b.AgentName != "":
		return "agent"
	}
	return "by hand, or by a program with a key"
}

// is reports a metadata key whose value is true.
func (b bubble) is(key string) bool { return string(b.Metadata[key]) == "true" }

func (b bubble) words() saying { return wordsFor(b.Message) }

// settled reports that nothing was wrong with the delivery.
func (b bubble) settled() bool { return b.State != "failed" && b.State != "expired" }

func (b bubble) streaming() bool { return b.Message.Message.Status == message.StatusStreaming }

func (b bubble) most() int {
	if b.Whole {
		return maxStoryText
	}
	return maxShownText
}

// body are the parts in words, behind what the message does to an earlier one.
func (b bubble) body() []templ.Component {
	var out []templ.Component
	for _, m := range b.marks() {
		out = append(out, happens(m.Name, m.Value))
	}
	if b.Metadata.String(message.MetaReaction) != "" {
		return out // its text is the emoji
	}
	return append(out, partsOf(b.Parts, b.most())...)
}

// marks say in words what metadata says of a message.
func (b bubble) marks() []pair {
	var out []pair
	add := func(key, name, before string) {
		if v := b.Metadata.String(key); v != "" {
			out = append(out, pair{name, before + clip(v, 200)})
		}
	}
	if v := b.Metadata.String(message.MetaReaction); v != "" {
		name := "Reacts"
		if b.is(message.MetaRemoved) {
			name = "Takes back the reaction"
		}
		out = append(out, pair{name, clip(v, 64)})
	}
	add(message.MetaReactsTo, "To", "message ")
	add(message.MetaEdits, "Changes", "message ")
	add(message.MetaDeletes, "Takes back", "message ")
	add(message.MetaAction, "Pressed", "")
	add(message.MetaRole, "Role", "")
	add(message.MetaStage, "Stage", "")
	if b.Metadata.String("mode") == "tool" {
		out = append(out, pair{"Of a tool", "not said by a person: it starts no turn"})
	}
	if b.is(message.MetaDraft) {
		out = append(out, pair{"Beginning", "a change of it makes it whole"})
	}
	if b.is(message.MetaRepeated) {
		out = append(out, pair{"Repeated", "handed to the agent once more after the host was cut off"})
	}
	return append(out, b.odd()...)
}

// mostOdd is how much of what is wrong with a message a conversation says.
const mostOdd = 3

// odd is what was wrong with the message, which was taken all the same.
func (b bubble) odd() []pair {
	raw, ok := b.Metadata[message.MetaWarnings]
	if !ok {
		return nil
	}
	var found message.Problems
	if json.Unmarshal(raw, &found) != nil || len(found) == 0 {
		return []pair{{"Odd", "taken although something about it is wrong: " + clip(string(raw), 200)}}
	}
	var out []pair
	for i, p := range found {
		if i == mostOdd && !b.Whole {
			return append(out, pair{"Odd", "and " + number(float64(len(found)-i)) + " more, which its story tells"})
		}
		out = append(out, pair{"Odd", clip(oddWords(p), 500)})
	}
	return out
}

// oddWords says what was wrong, and where.
func oddWords(p message.Problem) string {
	where := "the message"
	if p.Part >= 0 {
		where = "part " + strconv.Itoa(p.Part+1)
	}
	return where + prefixed(" of type ", p.Type) + prefixed(", field ", p.Field) + ": found " + p.Found + ", expected " + p.Allowed
}

// rest are the other metadata, for the page of a message's story.
func (b bubble) rest() []pair {
	var out []pair
	for _, key := range sortedKeys(b.Metadata) {
		if key == message.MetaWarnings {
			continue // see odd
		}
		out = append(out, pair{clip(key, 100), clip(string(b.Metadata[key]), 500)})
	}
	return out
}

// degradedWords says what was shown as something else.
func degradedWords(from, to, reason string) string {
	if to == "none" {
		return from + " was left out: " + reason
	}
	return from + " was shown as " + to + ": " + reason
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
