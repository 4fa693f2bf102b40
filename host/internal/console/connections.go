package console

import (
	"net/http"
	"net/url"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

func (c *console) connections(mux *routes) {
	mux.HandleFunc("GET "+Path+"connections", c.page(c.showConnections))
}

// connectionsView is what the Connections page shows.
type connectionsView struct {
	Channel, Agent, What string // that is wanted; "" = any
	Lines                []api.Connection
	Older                string // where older ones are; "" = there are none
}

// query is what the API takes, and the page.
func (v connectionsView) query() url.Values {
	q := url.Values{}
	for name, of := range map[string]string{"channel": v.Channel, "agent": v.Agent, "what": v.What} {
		if of != "" {
			q.Set(name, of)
		}
	}
	return q
}

// connectionsAt is where the history of a channel or an agent is.
func connectionsAt(v connectionsView) string { return Path + "connections?" + v.query().Encode() }

func (c *console) showConnections(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	v := connectionsView{Channel: in.Get("channel"), Agent: in.Get("agent"), What: in.Get("what")}
	q := v.query()
	q.Set("limit", "100")
	q.Set("cursor", in.Get("cursor"))
	list, err := get[struct {
		Connections []api.Connection `json:"connections"`
		Next        string           `json:"next_cursor"`
	}](c, r, "connections?"+q.Encode())
	if err != nil {
		return err
	}
	if v.Lines = list.Connections; list.Next != "" {
		q.Del("limit")
		q.Set("cursor", list.Next)
		v.Older = Path + "connections?" + q.Encode()
	}
	c.show(w, r, http.StatusOK, view{Title: "Connections", Nav: navConnections, Lead: "Who came to a channel or an agent, why it went, and who was refused. Kept for 30 days."}, connectionsPage(v))
	return nil
}

// toneOf is how a line of the history looks.
func toneOf(c api.Connection) tone {
	switch c.What {
	case "refused":
		return fault
	case "left":
		return idle
	}
	return good
}
