package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"/help": "help", " /Help ": "help", "cmd:/help": "help", "act:cmd:/help": "help", "/agent bob  x": "agent bob x",
		"/": "", "//x": "", "/etc/passwd": "", "help": "", "nav:/x": "", "act:nav:/x": "", "": "", "cmd:help": "", "/* c */": "",
	} {
		name, args, ok := Parse(in)
		got := strings.Join(append([]string{name}, args...), " ")
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q → %q %v, want %q", in, got, ok, want)
		}
	}
}

func TestRun(t *testing.T) {
	r := New()
	r.Add(Command{Name: "mine", About: "added", Run: func(*Registry, Call) Result { return Result{Answer: message.Text("yes")} }})
	call := func(line string) Result {
		name, args, _ := Parse(line)
		return r.Run(Call{Name: name, Args: args, Agent: "echo", Agents: []string{"echo", "none"}, Running: line == "/stop"})
	}
	for line, want := range map[string]string{
		"/help": "/mine", "/start": "Hello", "/x": "Unknown command /x — try /help", "/notify": "Notices are on",
		"/notify off": "Notices are off.", "/agent none": "none answers", "/stop": "Stopped.", "/mine": "yes",
	} {
		if got := call(line).Answer.Text; !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", line, got, want)
		}
	}
	if got := call("/agent none"); got.Agent == nil || *got.Agent != "none" {
		t.Error("/agent none chooses nobody")
	}
	if got := call("/agent nobody"); got.Agent != nil || len(got.Answer.Parts) != 1 {
		t.Error("/agent with an unknown name must change nothing and show the list")
	}
	if got := call("/notify off"); got.Muted == nil || !*got.Muted {
		t.Error("/notify off does not mute")
	}
	if !call("/stop").Stop || r.Run(Call{Name: "stop"}).Stop {
		t.Error("/stop must stop just what runs")
	}
	if !slices.Contains(strings.Split(call("/help").Answer.Text, "\n"), "/notify on|off — switch the host's own notices on or off in this conversation") {
		t.Error("/help lacks the usage")
	}
}
