package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor"
)

// loader reads the file of plugins. Nobody named it and it is not there: no
// plugins.
func loader(c config.Serve) func() ([]config.Plugin, error) {
	return func() ([]config.Plugin, error) {
		if _, err := os.Stat(c.Plugins); errors.Is(err, fs.ErrNotExist) && !c.PluginsNamed {
			return nil, nil
		}
		return config.LoadPlugins(c.Plugins, os.LookupEnv)
	}
}

// reloadOnHangup makes SIGHUP read plugins.yaml again, until ctx ends.
func reloadOnHangup(ctx context.Context, s *supervisor.Supervisor, log *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		if _, err := s.Reload(ctx); err != nil {
			for line := range strings.Lines(err.Error()) {
				log.Error("plugins.yaml refused, nothing changed", "error", strings.TrimSpace(line))
			}
		}
	}
}
