package console

import (
	"embed"
	"strings"
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
}

// snippetsOf makes the snippets of a channel. url is the host's.
func snippetsOf(url, channel, token string) []snippet {
	fill := strings.NewReplacer("{{url}}", url, "{{ws}}", "ws"+strings.TrimPrefix(url, "http")+"/api/v1/channels/bridge/ws", "{{token}}", token, "{{channel}}", channel)
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
			Name: "curl", Text: read("send.sh"),
			Note: "This writes to the channel as an operator, with the admin key of the data directory or one in PONTOON_KEY, while an adapter is attached or the channel has a queue. " +
				"Adapters themselves need a WebSocket.",
		},
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
