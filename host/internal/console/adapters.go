package console

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

func (c *console) adapters(mux *routes) {
	mux.HandleFunc("GET "+Path+"adapters", c.page(c.listAdapters))
}

func (c *console) listAdapters(w http.ResponseWriter, r *http.Request) error {
	list, err := get[adapterList](c, r, "adapters"+page(r))
	if err != nil {
		return err
	}
	c.show(w, r, http.StatusOK, view{Title: "Adapters", Nav: navAdapters, Lead: "Who is attached now, and what of what they can do counts."}, adaptersPage(list.Adapters, r.URL, list.Next, c.Now()))
	return nil
}

// leftOut is one of the capabilities that were declared and don't count, with why.
type leftOut struct{ Name, Why string }

func refusedCaps(a api.Adapter) []leftOut {
	var out []leftOut
	for _, name := range a.Declared {
		switch {
		case slices.Contains(a.Effective, name):
		case slices.Contains(a.Unknown, name):
			out = append(out, leftOut{name, "not known to this host, or not part of protocol " + a.Protocol})
		default:
			out = append(out, leftOut{name, "not allowed by the channel's policy"})
		}
	}
	return out
}

// roundTrip is how long a ping takes, as people read it.
func roundTrip(ms *float64) string {
	if ms == nil {
		return "not measured yet: the host pings every 54 s"
	}
	return strconv.FormatFloat(*ms, 'f', 1, 64) + " ms"
}
