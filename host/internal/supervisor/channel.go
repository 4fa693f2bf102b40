package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

const actor = "plugins.yaml" // in the audit log

// own makes the plugin's channel, or brings its policy up to what the entry
// says. What the entry leaves out stays as it is.
func (s *Supervisor) own(ctx context.Context, p config.Plugin) (ledger.Channel, error) {
	if err := s.checkAgent(p); err != nil {
		return ledger.Channel{}, err
	}
	_, err := s.Store.Channel(ctx, p.Name)
	if errors.Is(err, ledger.ErrNotFound) {
		row := ledger.Channel{ID: uuid.NewString(), Name: p.Name, Kind: plugin.Kind, Enabled: true, Agent: "echo", Queue: true}
		apply(&row, p.Policy)
		row, err = s.Store.CreateChannel(ctx, row, nil, change("channel.create", p))
		if err == nil {
			s.Log.Info("channel created", "channel", row.Name, "id", row.ID, "by", p.Source)
		}
		return row, err
	}
	if err != nil {
		return ledger.Channel{}, err
	}
	return s.edit(ctx, p.Name, func(row *ledger.Channel) (*ledger.Change, error) {
		if row.Kind != plugin.Kind {
			return nil, fmt.Errorf("%s: name: channel %q exists and is of kind %s: choose another name, or delete that channel", p.Source, p.Name, row.Kind)
		}
		before := *row
		apply(row, p.Policy)
		by := change("channel.update", p)
		by.Before, by.After = auth.Diff(auth.PolicyOf(before), auth.PolicyOf(*row))
		if by.After == nil {
			return nil, nil // it says that already
		}
		return &by, nil
	})
}

// edit changes a plugin's channel beside whoever else does, and makes it take effect.
func (s *Supervisor) edit(ctx context.Context, name string, change func(*ledger.Channel) (*ledger.Change, error)) (ledger.Channel, error) {
	row, err := ledger.Edit(ctx, func(ctx context.Context) (ledger.Channel, error) { return s.Store.Channel(ctx, name) }, change, s.Store.UpdateChannel)
	if err == nil {
		s.Hub.Update(row)
	}
	return row, err
}

func (s *Supervisor) checkAgent(p config.Plugin) error {
	if a := p.Policy.Agent; a != nil && !slices.Contains(s.Hub.AgentNames(), *a) {
		return fmt.Errorf("%s: agent: found %q, expected %s", p.Source, *a, strings.Join(s.Hub.AgentNames(), ", "))
	}
	return nil
}

// checkAgents refuses a new file with an unknown agent. When the host starts, an
// agent that is gone costs only the plugins that want it.
func (s *Supervisor) checkAgents(entries []config.Plugin) error {
	var all []error
	for _, p := range entries {
		all = append(all, s.checkAgent(p))
	}
	return errors.Join(all...)
}

func apply(row *ledger.Channel, p config.PluginPolicy) {
	if p.Accept != nil {
		row.Accept = p.Accept
	}
	if p.Agent != nil {
		row.Agent = *p.Agent
	}
	if p.Queue != nil {
		row.Queue = *p.Queue
	}
	if p.Retention != nil {
		row.Retention = *p.Retention
	}
}

func change(action string, p config.Plugin) ledger.Change {
	said := map[string]any{"source": p.Source} // and what the file says of the channel, in the API's words
	if p.Policy.Accept != nil {
		said["accept_capabilities"] = p.Policy.Accept
	}
	if p.Policy.Agent != nil {
		said["agent"] = *p.Policy.Agent
	}
	if p.Policy.Queue != nil {
		said["queue"] = *p.Policy.Queue
	}
	if p.Policy.Retention != nil {
		said["retention_days"] = *p.Policy.Retention
	}
	detail, _ := json.Marshal(said) // strings, numbers and bools can't fail
	return ledger.Change{Actor: actor, Action: action, Target: p.Name, Detail: detail}
}

func (s *Supervisor) enableChannel(ctx context.Context, name string, on bool) (ledger.Channel, error) {
	action := "plugin.disable"
	if on {
		action = "plugin.enable"
	}
	row, err := s.edit(ctx, name, func(row *ledger.Channel) (*ledger.Change, error) {
		if row.Enabled == on {
			return nil, nil // it says that already
		}
		before := *row
		row.Enabled = on
		by := auth.By(ctx, action, name, nil)
		by.Before, by.After = auth.Diff(auth.PolicyOf(before), auth.PolicyOf(*row))
		return &by, nil
	})
	if err != nil {
		return row, fmt.Errorf("channel %s: %w", name, err)
	}
	return row, nil
}
