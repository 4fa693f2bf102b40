package api

import (
	"net/http"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// upgradeAgent lets an agent in. Whatever is wrong with its key it is told in a
// frame, after the upgrade.
func (s *server) upgradeAgent(w http.ResponseWriter, r *http.Request) {
	if s.AgentSockets.Full() {
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, "too many connections: try again later")
		return
	}
	key, _ := bearer(r.Header.Get("Authorization"))
	conn, err := transport.Upgrade(w, r)
	if err != nil {
		s.Log.Debug("upgrade failed", "remote", r.RemoteAddr, "error", err)
		return
	}
	s.AgentSockets.Start(conn, agent.SocketOrigin{Key: key, Remote: r.RemoteAddr})
}
