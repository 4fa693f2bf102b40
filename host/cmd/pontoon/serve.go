package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
)

// drainTimeout bounds how long open requests hold up the end.
const drainTimeout = 10 * time.Second

func serveCommand(o *clientOptions) *cobra.Command {
	var c config.Serve
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the host",
		Long: "Run the host until SIGTERM. The first start makes the data directory with its database and an admin key.\n" +
			"The host listens on loopback unless told otherwise.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Data = o.data
			if err := c.Validate(); err != nil {
				return usageError{err}
			}
			return serve(cmd.Context(), c, cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Listen, "listen", config.DefaultListen, "address to listen on; port 0 takes a free one")
	f.StringVar(&c.PublicURL, "public-url", "", "url at which others reach the host (default: where it listens)")
	f.StringArrayVar(&c.AllowOrigin, "allow-origin", nil, "origin that browsers may call the API from; may be repeated")
	f.StringVar(&c.TLSCert, "tls-cert", "", "certificate file")
	f.StringVar(&c.TLSKey, "tls-key", "", "key file of the certificate")
	f.BoolVar(&c.AllowPlainPublic, "allow-plain-public", false, "allow an address that other machines reach without TLS")
	f.BoolVar(&c.NoQueryToken, "no-query-token", false, "refuse adapters' tokens in the url")
	f.BoolVar(&c.Verbose, "verbose", false, "log debug lines too")
	return cmd
}

// serve wires the packages together and runs them until ctx ends.
func serve(ctx context.Context, c config.Serve, cmd *cobra.Command) error {
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))

	st, err := store.Open(ctx, c.Data, store.Options{Log: log})
	if err != nil {
		return err
	}
	defer func() {
		if err := st.Close(); err != nil {
			log.Error("store not closed cleanly", "error", err)
		}
	}()
	keys, err := auth.OpenKeys(c.Data)
	if err != nil {
		return err
	}
	ln, url, err := listen(ctx, c)
	if err != nil {
		return err
	}
	if c.PublicURL != "" {
		url = c.PublicURL
	}
	h := hub.New(hub.Options{
		Store: st, Commands: command.New(), Log: log,
		Agents: map[string]hub.Agent{"echo": &agent.Echo{Assets: url + "/assets/"}},
	})
	defer h.Close()
	if n, err := h.Recover(ctx); err != nil {
		return fmt.Errorf("hand over open messages: %w", err)
	} else if n > 0 {
		log.Info("open messages handed over again", "count", n)
	}
	gate := auth.NewGate(st, nil)
	slots := bridge.New(h, gate, bridge.Options{Log: log})
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	srv := &http.Server{
		Handler: api.New(streams, api.Options{
			Store: st, Hub: h, Slots: slots, Keys: keys, Assets: agent.Assets(), Log: log, Version: version, Now: time.Now,
			Ready: st.Writable, Origins: c.AllowOrigin, RefuseQueryToken: c.NoQueryToken,
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Pontoon %s listens on %s\nThe admin key is in %s\n", version, url, filepath.Join(c.Data, auth.KeyFile))
	return runServices(ctx, log, srv, ln, gate, slots, endStreams)
}

// runServices serves until ctx ends or a service fails, then drains: no new
// requests, adapters told to come back later, what was accepted written.
func runServices(ctx context.Context, log *slog.Logger, srv *http.Server, ln net.Listener, gate *auth.Gate, slots *bridge.Slots, endStreams func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	services := map[string]func(context.Context) error{
		"token use": gate.Serve,
		"pulse":     slots.Serve,
		"http": func(context.Context) error {
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
	}
	for name, serve := range services {
		wg.Go(func() {
			if err := serve(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	<-ctx.Done()
	log.Info("stopping")
	endStreams()
	slots.Close()
	deadline, done := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer done()
	if err := srv.Shutdown(deadline); err != nil {
		log.Warn("requests cut off", "error", err)
		_ = srv.Close()
	}
	wg.Wait()
	log.Info("stopped")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// listen opens the socket and says at which url it is reached.
func listen(ctx context.Context, c config.Serve) (net.Listener, string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, "", err
	}
	scheme := "http"
	if c.TLSCert != "" {
		cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			_ = ln.Close()
			return nil, "", fmt.Errorf("load TLS certificate: %w", err)
		}
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
		scheme = "https"
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "127.0.0.1"
		}
	}
	return ln, scheme + "://" + net.JoinHostPort(strings.Trim(host, "[]"), port), nil
}
