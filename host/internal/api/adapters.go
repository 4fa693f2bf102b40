package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// Adapter is who is attached to a channel.
type Adapter struct {
	ChannelID   string          `json:"channel_id"`
	Channel     string          `json:"channel"`
	Transport   string          `json:"transport"`
	Platform    string          `json:"platform"`
	Protocol    string          `json:"protocol"`
	Declared    []string        `json:"declared" doc:"Capabilities that it declared, also those that don't count"`
	Unknown     []string        `json:"unknown" doc:"Of them, those that this host does not know or its protocol does not have"`
	Effective   []string        `json:"effective" doc:"Capabilities that count"`
	Remote      string          `json:"remote"`
	TokenID     string          `json:"token_id,omitempty" doc:"Which of the channel's tokens it came with; absent = it needed none"`
	Since       Time            `json:"since"`
	LastFrameAt Time            `json:"last_frame_at" doc:"When it was last heard, keep-alives included"`
	QueueLength int             `json:"queue_length"`
	FramesIn    uint64          `json:"frames_in" doc:"Frames that it sent since it attached"`
	FramesOut   uint64          `json:"frames_out" doc:"Frames that it was sent since it attached, acknowledgements included"`
	Status      *PlatformStatus `json:"platform_status,omitempty" doc:"How the platform is, as the adapter says; absent = it does not say"`
	RoundTripMS *float64        `json:"round_trip_ms" doc:"Of the latest ping, which is sent every 54 s; null = none was answered yet"`
}

func showAdapter(id, name string, a hub.Summary) Adapter {
	var round *float64
	if a.RoundTrip > 0 {
		ms := float64(a.RoundTrip.Microseconds()) / 1000
		round = &ms
	}
	token := ""
	if a.Token != 0 {
		token = strconv.FormatInt(a.Token, 10)
	}
	return Adapter{
		TokenID: token, ChannelID: id, Channel: name, Transport: a.Transport, Platform: a.Platform, Protocol: a.Protocol, Declared: orEmpty(a.Declared), Unknown: orEmpty(a.Unknown),
		Effective: a.Effective.Names(), Remote: a.Remote, Since: timeOf(a.Since), LastFrameAt: timeOf(a.LastFrame), QueueLength: a.Queue,
		FramesIn: a.FramesIn, FramesOut: a.FramesOut, RoundTripMS: round, Status: showPlatform(a.Status),
	}
}

type adapterList struct {
	Adapters   []Adapter `json:"adapters"`
	NextCursor string    `json:"next_cursor,omitempty"`
}

type capabilityList struct {
	Capabilities []render.Capability `json:"capabilities"`
}

func (s *server) adapters() {
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/adapters", "list-adapters", "Adapters that are attached now, by channel", 200, 422)), s.listAdapters)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/capabilities", "list-capabilities", "The capability catalogue", 200)),
		func(context.Context, *struct{}) (*body[capabilityList], error) {
			return &body[capabilityList]{capabilityList{render.Catalogue()}}, nil
		})
}

func (s *server) listAdapters(ctx context.Context, in *Page) (*body[adapterList], error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	out := adapterList{Adapters: []Adapter{}}
	for {
		rows, err := s.visible(ctx, after, in.Limit)
		if err != nil {
			return nil, s.fault(err, "channels")
		}
		for _, r := range rows {
			after = r.Key
			if s.end(r) != nil { // a front end is none
				continue
			}
			if a, ok := s.Hub.Attached(r.Key); ok {
				out.Adapters = append(out.Adapters, showAdapter(r.ID, r.Name, a))
				if len(out.Adapters) == in.Limit {
					out.NextCursor = in.next(in.Limit, func() int64 { return after })
					return &body[adapterList]{out}, nil
				}
			}
		}
		if len(rows) < in.Limit {
			return &body[adapterList]{out}, nil
		}
	}
}

// upgrade lets an adapter in. Whatever is wrong with its token it is told in a
// frame, after the upgrade.
func (s *server) upgrade(w http.ResponseWriter, r *http.Request) {
	if s.Slots.Full() {
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, "too many connections: try again later")
		return
	}
	token := s.tokenOf(r)
	conn, err := transport.Upgrade(w, r)
	if err != nil {
		s.Log.Debug("upgrade failed", "remote", r.RemoteAddr, "error", err)
		return
	}
	// The handler returns, which frees the server's buffers of this request.
	s.Slots.Start(conn, bridge.Origin{Transport: "websocket", Token: token, Remote: r.RemoteAddr, Local: netguard.Local(r)})
}

// tokenOf finds the token in the request: the first place that has one counts.
func (s *server) tokenOf(r *http.Request) string {
	if t := r.URL.Query().Get("token"); t != "" && !s.RefuseQueryToken {
		return t
	}
	if t := r.Header.Get("X-Bridge-Token"); t != "" {
		return t
	}
	t, _ := bearer(r.Header.Get("Authorization"))
	return t
}
