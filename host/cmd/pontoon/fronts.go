package main

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	agentbridle "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/host/internal/front/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
)

// fronts are the front ends, each on a channel of its own, with Socket.IO for
// browsers and agents of Bridle.
type fronts struct {
	runs     *agui.Front
	browsers *bridle.Front
	io       *socketio.Server
}

func openFronts(ctx context.Context, c config.Serve, st *sqlite.Store, files *attach.Store, h *hub.Hub, list *paging.Pages, bodies *intake.Bodies, agents *agentbridle.Agents, failures *netguard.Failures, log *slog.Logger) (*fronts, error) {
	runs, err := agui.Open(ctx, agui.Options{Store: st, Attachments: files, Hub: front.Local{Hub: h}, Pages: list, Bodies: bodies, Log: log})
	if err != nil {
		return nil, err
	}
	browsers, err := bridle.Open(ctx, bridle.Options{Store: st, Attachments: files, Hub: front.Local{Hub: h}, Pages: list, Bodies: bodies, Agents: agents, Secret: c.BridleSecret, Failures: failures, Log: log})
	if err != nil {
		runs.Close()
		return nil, err
	}
	io := socketio.New(socketio.Options{
		Namespaces: map[string]socketio.Namespace{agentbridle.Namespace: agents, bridle.Namespace: browsers}, Log: log, NoQuery: c.NoQueryToken,
		Origin: func(r *http.Request) bool {
			return socketio.SameOrigin(r) || slices.Contains(c.AllowOrigin, r.Header.Get("Origin"))
		},
	})
	return &fronts{runs, browsers, io}, nil
}

// ends are the front ends as the API knows them. Another one is added here, and
// where it is opened.
func (f *fronts) ends() []front.End { return []front.End{f.runs, f.browsers} }

// close ends what clients wait for.
func (f *fronts) close() {
	f.runs.Close()
	f.browsers.Close()
	f.io.Close()
}
