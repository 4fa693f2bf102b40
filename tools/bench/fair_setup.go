package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

// maxAudited bounds the lines of the audit log: each takes a commit of its own.
const maxAudited = 100_000

// culpritRuns are the runs that a culprit's process may name its messages by: one for
// each connection.
const culpritRuns = 100

// start brings up a host with channels for all, and what the culprits need of it.
func (f *fair) start(ctx context.Context) (err error) {
	if f.dir, err = os.MkdirTemp(f.Dir, "pontoon-bench-"); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if f.host, err = startHost(ctx, f.Exe, f.dir); err != nil {
		return err
	}
	for _, name := range f.Culprits {
		if err := f.provision(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f *fair) stop() {
	for _, a := range f.agents {
		a.stop()
	}
	if f.host != nil {
		f.host.stop()
	}
	if f.dir != "" {
		_ = os.RemoveAll(f.dir)
	}
}

// provision makes the channels of a culprit and of those beside it.
func (f *fair) provision(ctx context.Context, name string) error {
	if err := f.provisionOthers(ctx, culprits[name].others); err != nil {
		return err
	}
	settings := map[string]any{"agent": "echo"}
	switch name {
	case culpritFlood, culpritFloodAcks:
		settings["rate_limit"] = culpritRate
	case culpritDrain:
		settings = backlogChannel(f.Queued, "echo")
	case culpritSlow, culpritSlowBeside:
		if err := f.startAgent(ctx, slowAgent); err != nil {
			return err
		}
		settings["agent"] = agentName(slowAgent)
	case culpritFloodAgent:
		key, err := f.newAgent(ctx, floodName)
		if err != nil {
			return err
		}
		f.keys[name], settings["agent"] = key, floodName
	}
	tokens, err := provisionAs(ctx, f.host, name, 1, settings)
	if err != nil {
		return err
	}
	f.tokens = append(f.tokens, tokens[0])
	switch name {
	case culpritHistory:
		return f.fillHistory(ctx, target{name, f.host.bridge(), tokens, 0})
	case culpritExport:
		return f.fillAudit(ctx, channelName(name, 0))
	}
	return nil
}

// provisionOthers makes the channels of those that are measured, with an agent of a
// kind, unless there are some.
func (f *fair) provisionOthers(ctx context.Context, kind string) error {
	if _, ok := f.others[kind]; ok {
		return nil
	}
	prefix, answers := "other", "echo"
	if kind != "" {
		if err := f.startAgent(ctx, kind); err != nil {
			return err
		}
		prefix, answers = "other-"+kind, agentName(kind)
	}
	tokens, err := provisionAs(ctx, f.host, prefix, f.Conns, map[string]any{"agent": answers})
	if err != nil {
		return err
	}
	f.others[kind] = target{"others", f.host.bridge(), tokens, f.host.pid()}
	return nil
}

// startAgent runs an agent of a kind, unless it runs.
func (f *fair) startAgent(ctx context.Context, kind string) error {
	if f.agents[kind] != nil {
		return nil
	}
	c, err := startAgent(ctx, f.host, kind)
	if err != nil {
		return fmt.Errorf("%s agent: %w", kind, err)
	}
	f.agents[kind] = c
	return nil
}

// newAgent makes an agent that a culprit is by its key.
func (f *fair) newAgent(ctx context.Context, name string) (key string, err error) {
	api, err := f.host.rest()
	if err != nil {
		return "", err
	}
	defer api.close()
	return api.newAgent(ctx, name, "websocket", map[string]any{})
}

func (f *fair) fillHistory(ctx context.Context, t target) error {
	f.Progress.say(fmt.Sprintf("making %d messages of history", f.History))
	fill := Scenario{Conns: 1, Window: 64, Conversations: 1, Size: 200}
	_, err := f.measure(ctx, t, fill, span{maxDuration, f.History / 2, grace})
	return err
}

// fillAudit changes a channel again and again: each change is a line of the audit log.
func (f *fair) fillAudit(ctx context.Context, channel string) error {
	f.Progress.say(fmt.Sprintf("making %d lines of the audit log", f.Audited))
	api, err := f.host.rest()
	if err != nil {
		return err
	}
	defer api.close()
	return each(f.Audited, provisioners, func(i int) error {
		var shown struct{ Name string }
		return api.call(ctx, http.MethodPatch, "/channels/"+channel, map[string]any{"retention_days": 1 + i%36_500}, &shown)
	})
}
