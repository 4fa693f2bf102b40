// Package metrics shows Prometheus what the host counts. The packages that do the
// work keep plain counters; they are read when somebody asks.
package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

// Path is where the host shows them.
const Path = "/metrics"

const (
	// scrapeTime bounds what one scrape reads of the database.
	scrapeTime = 8 * time.Second
	// maxScrapes is how many may be under way at once: who wants more is told to
	// come again.
	maxScrapes = 2
)

// Plugins are the adapters that the host runs.
type Plugins interface {
	List() []plugin.Status
}

// Options are what is shown; all but Plugins and Backup are needed.
type Options struct {
	Store    Ledger
	Hub      *hub.Hub
	Failures *auth.Failures
	Plugins  Plugins // nil = none

	Connections map[string]func() int    // how many there are of each kind
	Attachments func() int64             // their bytes
	Backup      func() (time.Time, bool) // when the newest known backup was made; nil = not known

	Log     *slog.Logger
	Version string
	Now     func() time.Time
}

// Metrics is what one host shows.
type Metrics struct {
	Options
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	show     http.Handler
}

// New makes the metrics of a host.
func New(o Options) (*Metrics, error) {
	m := &Metrics{Options: o, registry: prometheus.NewRegistry()}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pontoon_http_requests_total", Help: "HTTP requests that were answered, by what they asked for.",
	}, []string{"method", "route", "status"})
	for _, c := range []prometheus.Collector{
		m.requests, built(o.Version), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{m},
	} {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	m.show = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
	})
	return m, nil
}

func built(version string) prometheus.Collector {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pontoon_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

// ServeHTTP shows the metrics to whoever may see them, which the caller has
// checked.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.show.ServeHTTP(w, r) }

// collector reads the host's counters for one scrape.
type collector struct{ *Metrics }

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d.Desc
	}
}

// Collect implements prometheus.Collector. What can't be read is left out, and
// counted.
func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	s := &scrape{Metrics: c.Metrics, to: to}
	s.store()
	s.channels(ctx)
	s.agents()
	s.plugins()
	s.doors()
	s.put(scrapeErrors, float64(s.errors))
}
