package hosttest

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/connlog"
	"github.com/pontoon-bridge/pontoon/host/internal/framelog"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/metrics"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor"
)

// Whole adds to a host what messages need not, as Setup.Whole says.
func Whole(s *Setup) { s.Whole = true }

// whole is what a host has beside what messages pass: see Setup.Whole.
type whole struct {
	failures *netguard.Failures
	sockets  *agent.Sockets
	runs     *agui.Front
	plugins  *supervisor.Supervisor
	account  *auth.Account
	met      *connlog.Log
	minutes  *metrics.Recorder
}

// prepare is what a store and sessions need from the beginning.
func (s *Setup) prepare(roster *agent.Roster) {
	from := secrets.Source{File: filepath.Join(s.Dir, secrets.FileName)}
	s.Store.Sealing = sqlite.Sealing{Secret: roster.Secret, Key: func(try func(sqlite.Sealer) (int, error)) (sqlite.Sealer, error) {
		key, _, err := from.Choose(func(k *secrets.Key) (int, error) {
			if k == nil {
				return try(nil)
			}
			return try(k)
		})
		if err != nil {
			return nil, err
		}
		return key, nil
	}}
	s.Bridge.Frames = framelog.NewBook()
}

// openWhole makes what must be there before agents are made of rows.
func (h *Host) openWhole(log *slog.Logger) *whole {
	w := &whole{failures: netguard.NewFailures(nil), met: connlog.New(h.Store, log, time.Now)}
	w.sockets = agent.NewSockets(agent.SocketOptions{Store: h.Store, Door: h.Gate, Out: h.Hub, Hub: h.Hub, Failures: w.failures, Log: log, Note: w.met.Note, Frames: framelog.NewBook()})
	h.Roster.Register(agent.SocketKind, w.sockets.Kind())
	return w
}

// complete opens the rest, once the roster and the slots are there.
func (w *whole) complete(h *Host, s *Setup, o *api.Options) error {
	var err error
	if w.runs, err = agui.Open(h.T.Context(), agui.Options{Store: h.Store, Attachments: h.Files, Hub: front.Local{Hub: h.Hub}, Log: o.Log}); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	load := s.Plugins
	if load == nil {
		load = func() ([]config.Plugin, error) { return nil, nil }
	}
	w.plugins, err = supervisor.New(supervisor.Options{
		Store: h.Store, Hub: h.Hub, Slots: h.Slots, Load: load, Self: self, Data: h.Dir, Version: o.Version, Log: o.Log, OnState: h.Hub.Events.PluginState,
	})
	if err != nil {
		return err
	}
	w.account = auth.NewAccount(auth.AccountOptions{
		Store: h.Store, Dir: h.Dir, Limiter: w.failures, Failures: &h.Gate.Failures, Now: time.Now,
		URL: func(code string) string { return "http://" + h.addr + "/console/setup?code=" + code },
	})
	w.minutes = &metrics.Recorder{Store: h.Store, Hub: h.Hub, Log: o.Log, Now: time.Now}
	o.Failures, o.AgentSockets, o.Fronts, o.Plugins, o.Account, o.Minutes = w.failures, w.sockets, []front.End{w.runs}, w.plugins, w.account, w.minutes.Minutes
	return nil
}

// surface puts who is logged in before the API.
func (w *whole) surface(h *Host, log *slog.Logger, next http.Handler) http.Handler {
	return netguard.Sessions(h.Gate, w.failures, log, next)
}

// services are what runs beside gate and slots.
func (w *whole) services(h *Host) []func(context.Context) error {
	return []func(context.Context) error{h.Store.Serve, h.Files.Serve, w.sockets.Serve, w.plugins.Serve, w.met.Serve, w.minutes.Serve}
}

// close ends what clients wait for.
func (w *whole) close() {
	w.runs.Close()
	w.sockets.Close()
	_ = w.account.Close() // a link that was not used is worthless
}
