// Package agents holds the example agents, for pages that show one to paste.
package agents

import _ "embed"

// Python is a whole agent, which reads PONTOON_URL and PONTOON_AGENT_KEY.
//
//go:embed agent.py
var Python string
