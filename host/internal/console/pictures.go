package console

import (
	"net/http"
	"net/url"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// Windows of the pictures.
const (
	windowHour = "hour"
	windowDay  = "day"
)

func (c *console) pictures(mux *routes) {
	mux.HandleFunc("GET "+Path+"metrics", c.page(c.showPictures))
	mux.HandleFunc("GET "+Path+"metrics/charts", c.page(c.refreshCharts))
}

// statistics are what charts shows: of a channel, or of all for "".
func (c *console) statistics(r *http.Request, channel, window string) (api.Statistics, error) {
	return get[api.Statistics](c, r, "statistics?"+statQuery(channel, window))
}

func statQuery(channel, window string) string {
	q := url.Values{"window": {window}}
	if channel != "" {
		q.Set("channel", channel)
	}
	return q.Encode()
}

// picturesAt is where the pictures of a channel, or of all for "", are.
func picturesAt(channel, window string) string {
	return Path + "metrics?" + statQuery(channel, window)
}

// asked reads which pictures are wanted; of what, the API checks.
func asked(r *http.Request) (channel, window string) {
	window = r.FormValue("window")
	if window == "" {
		window = windowHour
	}
	return r.FormValue("channel"), window
}

func (c *console) showPictures(w http.ResponseWriter, r *http.Request) error {
	channel, window := asked(r)
	s, err := c.statistics(r, channel, window)
	if err != nil {
		return err
	}
	channels, err := c.channelField(r, channel)
	if err != nil {
		return err
	}
	c.show(w, r, http.StatusOK, view{Title: "Metrics", Nav: navMetrics}, picturesPage(channels, s))
	return nil
}

// refreshCharts answers htmx, which shows the charts of a page anew.
func (c *console) refreshCharts(w http.ResponseWriter, r *http.Request) error {
	s, err := c.statistics(r, r.FormValue("channel"), r.FormValue("window"))
	if err != nil {
		return err
	}
	shown := charts(s)
	if r.FormValue("brief") != "" {
		shown = brief(s, true)
	}
	c.part(w, r, shown)
	return nil
}
