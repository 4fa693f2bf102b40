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
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor"
)

// loadPlugins reads the file of plugins. Nobody named it and it is not there: no
// plugins.
func loadPlugins(file string, named bool, from config.Lookup) ([]config.Plugin, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	return config.LoadPlugins(file, from)
}

// loader reads the file of plugins, with secrets of the store as they are then.
func loader(ctx context.Context, c config.Serve, st *sqlite.Store) func() ([]config.Plugin, error) {
	secret := func(name string) (string, bool, error) {
		value, err := st.SecretValue(ctx, name)
		if errors.Is(err, ledger.ErrNotFound) {
			return "", false, nil
		}
		return value, err == nil, err
	}
	return func() ([]config.Plugin, error) {
		return loadPlugins(c.Plugins, c.PluginsNamed, config.Lookup{Env: os.LookupEnv, Secret: secret})
	}
}

// reloadOnHangup makes SIGHUP read plugins.yaml and the certificate again, until
// ctx ends.
func reloadOnHangup(ctx context.Context, s *supervisor.Supervisor, b *network, log *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		b.reload()
		if _, err := s.Reload(ctx); err != nil {
			for line := range strings.Lines(err.Error()) {
				log.Error("plugins.yaml refused, nothing changed", "error", strings.TrimSpace(line))
			}
		}
	}
}
