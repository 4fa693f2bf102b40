package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/backup"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/metrics"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// watch is what the host counts: shown to Prometheus, and kept for pictures.
type watch struct {
	*metrics.Metrics
	minutes *metrics.Recorder
	log     *slog.Logger
	srv     *http.Server // of those who need no key; nil = there is none
	ln      net.Listener
}

// maxScrapers bounds the connections of those who need no key.
const maxScrapers = 64

// openWatch makes the metrics, and takes the address of --metrics-listen if one
// is given.
func openWatch(ctx context.Context, c config.Serve, o metrics.Options) (*watch, error) {
	o.Version, o.Now = version, time.Now
	o.Backup = func() (time.Time, bool) {
		newest, ok := backup.Newest(c.Data)
		return newest.At, ok
	}
	m, err := metrics.New(o)
	if err != nil {
		return nil, err
	}
	w := &watch{Metrics: m, log: o.Log, minutes: &metrics.Recorder{Store: o.Store, Hub: o.Hub, Log: o.Log, Now: time.Now}}
	if c.MetricsListen == "" {
		return w, nil
	}
	var lc net.ListenConfig
	if w.ln, err = lc.Listen(ctx, "tcp", c.MetricsListen); err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+metrics.Path, m)
	guard := netguard.New(netguard.Options{MaxConns: maxScrapers, MaxBody: func(*http.Request) int64 { return 0 }, HostAlways: true, Log: o.Log})
	w.ln, w.srv = guard.Listener(w.ln), guard.Server(mux)
	return w, nil
}

// url is where the metrics are shown without a key; "" = nowhere.
func (w *watch) url() string {
	if w.ln == nil {
		return ""
	}
	return "http://" + w.ln.Addr().String() + metrics.Path
}

// serve shows the metrics until ctx ends.
func (w *watch) serve(ctx context.Context) error {
	if w.srv == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = w.srv.Close() })
	defer stop()
	if err := w.srv.Serve(w.ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// close frees what openWatch took, also if serve never ran.
func (w *watch) close() {
	if w.ln != nil {
		_ = w.ln.Close() // it may be closed already
	}
}
