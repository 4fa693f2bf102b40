package supervisor

import (
	"context"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/program"
)

// List is every plugin of the file, in its order.
func (s *Supervisor) List() []plugin.Status {
	all := s.services()
	out := make([]plugin.Status, len(all))
	for i, v := range all {
		out[i] = v.show()
	}
	return out
}

// Status is one plugin, by name. Error: ErrUnknown.
func (s *Supervisor) Status(name string) (plugin.Status, error) {
	v, err := s.find(name)
	if err != nil {
		return plugin.Status{}, err
	}
	return v.show(), nil
}

// Users are the plugins, as they run, that use each secret of the secret store.
func (s *Supervisor) Users() map[string][]string {
	users := map[string][]string{}
	for _, v := range s.services() {
		p := v.entry()
		for _, name := range p.Secrets {
			users[name] = append(users[name], p.Name)
		}
	}
	return users
}

// Logs returns up to n of the newest kept lines after seq, oldest first, and a
// channel that is closed when there are more.
func (s *Supervisor) Logs(name string, after int64, n int) ([]plugin.Line, <-chan struct{}, error) {
	v, err := s.find(name)
	if err != nil {
		return nil, nil, err
	}
	lines, more := v.logs.read(after, n)
	return lines, more, nil
}

// Restart stops the plugin if it runs and starts it, also out of quarantine.
// It returns when that has been ordered. Errors: ErrUnknown, ErrByFile,
// ErrDisabled.
func (s *Supervisor) Restart(name string) error {
	v, err := s.find(name)
	if err != nil {
		return err
	}
	return v.restart()
}

// Enable and Disable start and stop the plugin for good, across restarts of the
// host: the setting is its channel's. Errors: ErrUnknown; Enable: ErrByFile.
func (s *Supervisor) Enable(ctx context.Context, name string) error {
	return s.setEnabled(ctx, name, true)
}

// Disable is the opposite of Enable.
func (s *Supervisor) Disable(ctx context.Context, name string) error {
	return s.setEnabled(ctx, name, false)
}

// Settle waits until what was last asked of the plugin has come about: it runs or
// rests, or could not be started. It returns when ctx ends at the latest.
func (s *Supervisor) Settle(ctx context.Context, name string) {
	if v, err := s.find(name); err == nil {
		v.come(ctx)
	}
}

func (s *Supervisor) setEnabled(ctx context.Context, name string, on bool) error {
	v, err := s.find(name)
	if err != nil {
		return err
	}
	if p := v.entry(); on && !p.Enabled {
		return fmt.Errorf("%w: %s says enabled: false", plugin.ErrByFile, p.Source)
	}
	row, err := s.enableChannel(ctx, name, on)
	if err != nil {
		return err
	}
	v.enable(row)
	return nil
}

// Changed is told of a change of a channel's row that was not made here: an operator
// may enable and disable a plugin by its channel.
func (s *Supervisor) Changed(row ledger.Channel) {
	if row.Kind != plugin.Kind {
		return
	}
	if v, err := s.find(row.Name); err == nil {
		v.enable(row)
	}
}

// Verify checks the plugin's program as a start would, without starting it: nil
// if it may run. It says what it found.
func (s *Supervisor) Verify(name string) (found string, err error) {
	v, err := s.find(name)
	if err != nil {
		return "", err
	}
	return program.Verify(v.entry(), s.Self, s.RequireSums)
}
