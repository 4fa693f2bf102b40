package main

import "testing"

func TestCLIAgents(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	var made agentView
	h.json(&made, "agent", "create", "parrot", "--kind", "echo")
	if made.ID == "" || made.Name != "parrot" || made.Kind != "echo" || !made.On || made.Key != "" {
		t.Errorf("created %+v", made)
	}
	holds(t, h.cli("agent", "create", "second", "--kind", "echo", "--disabled"), "second", "echo")
	if r := runCommand(t, h.env(), "{}", "agent", "create", "third", "--kind", "echo", "--config", "-"); r.code != 0 {
		t.Errorf("config from stdin: %+v", r)
	}
	var list struct{ Agents []agentView }
	h.json(&list, "agent", "list")
	if len(list.Agents) != 4 || list.Agents[0].Name != "echo" || !list.Agents[0].BuiltIn || list.Agents[2].On {
		t.Errorf("list %+v", list)
	}
	holds(t, h.cli("agent", "list"), "NAME", "parrot", made.ID)
	holds(t, h.cli("agent", "kinds"), "KIND", "echo")

	var channel channelView
	h.json(&channel, "channel", "create", "c", "--agent", "parrot", "--agents", "parrot,echo")
	h.attach(channel.Token).ask("room", "hello", "echo: hello")
	var rows struct{ Messages []row }
	h.json(&rows, "messages", "c")
	if rows.Messages[0].Author != "parrot" {
		t.Errorf("answered by %q", rows.Messages[0].Author)
	}
	for _, args := range [][]string{{"agent", "delete", "parrot"}, {"agent", "update", "parrot", "--name", "bird"}} {
		r := runCommand(t, h.env(), "", args...)
		if r.code != 1 {
			t.Errorf("%v: %+v", args, r)
		}
		oneLine(t, r.err, "in use by channel c")
	}
	var shown agentView
	h.json(&shown, "agent", "update", "second", "--name", "bird")
	h.json(&shown, "agent", "enable", "bird")
	if shown.Name != "bird" || !shown.On {
		t.Errorf("updated to %+v", shown)
	}
	h.json(&shown, "agent", "disable", shown.ID)
	if shown.On {
		t.Error("disable: still enabled")
	}
	holds(t, h.cli("agent", "show", "bird"), "enabled", "false", "config")
	holds(t, h.cli("agent", "delete", "bird"), "Deleted agent bird")
	var keys struct{ Keys []struct{ ID string } }
	h.json(&keys, "agent", "key", "list", "echo")
	if len(keys.Keys) != 0 {
		t.Errorf("keys %+v", keys)
	}
	h.stop()
	h.again() // they are still there
	h.json(&list, "agent", "list")
	if len(list.Agents) != 3 {
		t.Errorf("after a restart %+v", list)
	}
	h.attach(channel.Token).ask("room", "again", "echo: again")
}

// What waits for an agent that is away outlives a crash, in its order; the user
// is told once, and the operator sees since when.
func TestAgentAwayKilled(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	var made agentView
	h.json(&made, "agent", "create", "parrot", "--kind", "echo", "--disabled")
	var channel channelView
	h.json(&channel, "channel", "create", "c", "--agent", "parrot", "--queue")
	if !channel.Health.Away || channel.Health.AwayAt == nil {
		t.Errorf("health %+v", channel.Health)
	}
	p := h.attach(channel.Token)
	const waits = "The agent is not there just now; your message waits."
	p.ask("room", "one", waits)
	p.say("room", "two")
	eventually(t, "the second is stored", func() bool { return len(h.history("c")) == 3 })
	h.kill()
	h.again()
	holds(t, h.cli("channel", "show", "c"), "agent away", "since ")
	holds(t, h.cli("agent", "list"), "parrot", "since ")
	p = h.attach(channel.Token)
	p.say("room", "three")
	eventually(t, "the third is stored", func() bool { return len(h.history("c")) == 4 })
	eventually(t, "three turns wait for the agent", func() bool {
		h.json(&channel, "channel", "show", "c")
		h.json(&made, "agent", "show", "parrot")
		return channel.Health.Waiting == 3 && made.Waiting == 3
	})
	holds(t, h.cli("channel", "show", "c"), "waiting turns  3", "queue length   0")
	holds(t, h.cli("channel", "list"), "QUEUE", "TURNS")
	holds(t, h.cli("agent", "show", "parrot"), "waiting turns  3")
	h.cli("agent", "enable", "parrot")
	for _, text := range []string{"one", "two", "three"} {
		if f := p.next("send"); f["text"] != "echo: "+text {
			t.Errorf("found %v, expected echo: %s", f, text)
		}
	}
	h.json(&channel, "channel", "show", "c")
	if channel.Health.Away || channel.Health.AwayAt != nil || channel.Health.Waiting != 0 {
		t.Errorf("health %+v", channel.Health)
	}
	eventually(t, "all are handled", func() bool {
		for _, m := range h.history("c") {
			if m.State == "received" {
				return false
			}
		}
		return true
	})
	told := 0
	for _, m := range h.history("c") {
		if m.Text == waits {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	holds(t, h.cli("why", h.history("c")[6].ID), "waits", "agent parrot is away")
}
