// Package command runs the slash commands that users type or press. A command
// is pure: it sees the state of its conversation and says what should change.
package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Call is a command with what it may know.
type Call struct {
	Name string
	Args []string

	Agent   string   // who answers in this conversation now
	Agents  []string // who may be chosen
	Muted   bool     // host notices are off
	Running bool     // a turn is running
}

// Result is what a command wants. The zero value does nothing.
type Result struct {
	Answer message.Message
	Agent  *string // choose this agent from now on
	Muted  *bool   // mute or unmute host notices
	Stop   bool    // cancel the running turn
}

// Command is one entry of the registry.
type Command struct {
	Name  string // lower case, without the slash
	Usage string // arguments, as /help shows them
	About string
	Run   func(r *Registry, c Call) Result
}

// Registry holds the commands of a host. Add to it before it is used.
type Registry struct {
	commands map[string]Command
	order    []string
}

// New makes a registry with the built-in commands.
func New() *Registry {
	r := &Registry{commands: map[string]Command{}}
	for _, c := range []Command{
		{"help", "", "list the commands", func(r *Registry, _ Call) Result { return Result{Answer: message.Text(r.help())} }},
		{"start", "", "say hello", func(r *Registry, _ Call) Result {
			return Result{Answer: message.Text("Hello! Write something, and the agent answers.\n\n" + r.help())}
		}},
		{"notify", "on|off", "switch the host's own notices on or off in this conversation", notify},
		{"agent", "[NAME]", "show or choose who answers in this conversation", agent},
		{"stop", "", "stop the answer that is being made", stop},
	} {
		r.Add(c)
	}
	return r
}

// Add registers a command. A name that is there already is a programming error.
func (r *Registry) Add(c Command) {
	if _, ok := r.commands[c.Name]; ok {
		panic("command: /" + c.Name + " is registered twice")
	}
	r.commands[c.Name] = c
	r.order = append(r.order, c.Name)
}

// Run runs a command; an unknown one gets an answer that says so.
func (r *Registry) Run(c Call) Result {
	cmd, ok := r.commands[c.Name]
	if !ok {
		return Result{Answer: message.Text("Unknown command /" + c.Name + " — try /help")}
	}
	return cmd.Run(r, c)
}

func (r *Registry) help() string {
	var b strings.Builder
	b.WriteString("Commands:")
	for _, name := range r.order {
		c := r.commands[name]
		b.WriteString("\n/" + name)
		if c.Usage != "" {
			b.WriteString(" " + c.Usage)
		}
		b.WriteString(" — " + c.About)
	}
	return b.String()
}

// Parse reads a command from what a user typed or pressed: /name args,
// cmd:/name args or act:cmd:/name args. The name comes in lower case.
func Parse(s string) (name string, args []string, ok bool) {
	s = strings.TrimSpace(s)
	if rest, found := strings.CutPrefix(s, "act:"); found && strings.HasPrefix(rest, "cmd:/") {
		s = rest
	}
	s = strings.TrimPrefix(s, "cmd:")
	if !strings.HasPrefix(s, "/") {
		return "", nil, false
	}
	words := strings.Fields(s)
	name = strings.ToLower(words[0][1:])
	if !isName(name) {
		return "", nil, false
	}
	return name, words[1:], true
}

// isName keeps paths, comments and a lone slash from being taken for commands.
func isName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func notify(_ *Registry, c Call) Result {
	state := map[bool]string{false: "on", true: "off"}
	if len(c.Args) == 1 {
		switch strings.ToLower(c.Args[0]) {
		case "on", "off":
			muted := strings.EqualFold(c.Args[0], "off")
			return Result{Answer: message.Text("Notices are " + state[muted] + "."), Muted: &muted}
		}
	}
	return Result{Answer: message.Text("Notices are " + state[c.Muted] + ". Use /notify on or /notify off.")}
}

func stop(_ *Registry, c Call) Result {
	if !c.Running {
		return Result{Answer: message.Text("Nothing is running.")}
	}
	return Result{Answer: message.Text("Stopped."), Stop: true}
}

func agent(_ *Registry, c Call) Result {
	if len(c.Args) == 1 && slices.Contains(c.Agents, c.Args[0]) {
		name := c.Args[0]
		return Result{Answer: message.Text(fmt.Sprintf("Agent %s answers from now on.", name)), Agent: &name}
	}
	rows := make([]wire.Element, 0, len(c.Agents)+1)
	rows = append(rows, wire.Element{Type: wire.ElementMarkdown, Content: "Current agent: " + c.Agent})
	for _, name := range c.Agents {
		rows = append(rows, wire.Element{
			Type: wire.ElementListItem, Text: name, Button: &wire.Button{Text: "Choose " + name, Value: "cmd:/agent " + name},
		})
	}
	card := &wire.Card{Header: &wire.Header{Title: "Agents", Color: "blue"}, Elements: rows}
	return Result{Answer: message.New(message.NewCard(card))}
}
