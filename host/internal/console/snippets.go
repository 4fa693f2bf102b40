package console

import (
	"embed"
	"strings"

	"github.com/pontoon-bridge/pontoon/docs/examples/agents"
)

//go:embed snippets
var snippetFiles embed.FS

// snippet is a program that attaches to a channel, or a command that writes to
// it, ready to be pasted.
type snippet struct {
	Name string // of the language
	File string // to save it as; "" = it is a command itself
	Text string
	Run  string // what to type then; "" = nothing
	Note string
	Key  bool // it needs a key of the API
}

// place is where snippets find the host.
type place struct {
	url     string
	keyFile string // of the admin key, on the host's machine
}

func (c *console) place() place { return place{c.URL, c.KeyFile} }

// quoted is text as a word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// snippetsOf makes the snippets of a channel.
func snippetsOf(at place, channel, token string) []snippet {
	url := at.url
	fill := strings.NewReplacer("{{url}}", url, "{{ws}}", "ws"+strings.TrimPrefix(url, "http")+"/api/v1/channels/bridge/ws", "{{token}}", token, "{{channel}}", channel, "{{keyfile}}", quoted(at.keyFile))
	read := func(name string) string {
		b, err := snippetFiles.ReadFile("snippets/" + name)
		if err != nil {
			panic("console: " + err.Error()) // the files are embedded
		}
		return fill.Replace(string(b))
	}
	return []snippet{
		{
			Name: "Python", File: "adapter.py", Text: read("adapter.py"),
			Run:  "python3 -m venv .venv\n.venv/bin/pip install --quiet websockets==15.0.1\n.venv/bin/python adapter.py\n",
			Note: "Python 3.9 or newer.",
		},
		{
			Name: "Node", File: "adapter.mjs", Text: read("adapter.mjs"),
			Run:  "npm install --silent --no-audit --no-fund ws@8\nnode adapter.mjs\n",
			Note: "Node 20 or newer; from 22 on the first line is not needed.",
		},
		{
			Name: "Go", File: "main.go", Text: read("adapter.go.txt"),
			Run:  "go mod init adapter\ngo get github.com/gorilla/websocket@v1.5.3\ngo run .\n",
			Note: "In a directory of its own.",
		},
		{
			Name: "curl", Text: read("send.sh"), Key: true,
			Note: "This writes to the channel as an operator, on the host's machine with the admin key in the file that it names, while an adapter is attached or the channel has a queue. " +
				"Adapters themselves need a WebSocket.",
		},
	}
}

// agentSnippet is a whole agent that dials in.
func agentSnippet(at place, key string) snippet {
	return snippet{
		Name: "Python", File: "agent.py", Text: agents.Python,
		Run:  "export PONTOON_URL=" + quoted(at.url) + "\nexport PONTOON_AGENT_KEY=" + quoted(key) + "\npython3 -m venv .venv\n.venv/bin/pip install --quiet websockets==15.0.1\n.venv/bin/python agent.py\n",
		Note: "Python 3.9 or newer. It says again what it is told: what it answers is in the function answer.",
	}
}

// snippetsTabs makes the tabs of them.
func snippetsTabs(list []snippet) []tab {
	out := make([]tab, len(list))
	for i, s := range list {
		out[i] = tab{s.Name, snippetPanel(s)}
	}
	return out
}
