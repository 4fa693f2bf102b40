package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

func (c *console) overview(mux *routes) {
	mux.HandleFunc("GET "+Path+"{$}", c.page(c.showOverview))
}

// concern is something that wants an operator: what, why, and where to look.
type concern struct {
	Is   condition
	What string
	Href string
}

// overviewView is how the host is, at a glance.
type overviewView struct {
	Tiles    []tile
	Concerns []concern
	Rows     []channelRow
	Failed   []api.DeadLetter // the newest
	Stats    api.Statistics   // of the last hour
	Begun    bool             // there is a channel of an operator's own, not only what the host makes
	Attached bool             // somebody attaches to one
	Spoken   bool             // something came in
	More     bool             // there are more channels than are shown
}

func (c *console) showOverview(w http.ResponseWriter, r *http.Request) error {
	list, err := get[channelList](c, r, "channels"+most)
	if err != nil {
		return err
	}
	letters, err := get[api.DeadCounts](c, r, "dead-letters", "counts")
	if err != nil {
		return err
	}
	rows, err := c.channelRows(r, list.Channels, letters)
	if err != nil {
		return err
	}
	agents, err := get[agentList](c, r, "agents"+most)
	if err != nil {
		return err
	}
	dead, err := get[failedList](c, r, "dead-letters?limit="+strconv.Itoa(mostProblems)+"&max_bytes="+pageBytes)
	if err != nil {
		return err
	}
	stats, err := c.statistics(r, "", windowHour)
	if err != nil {
		return err
	}
	plugins, err := c.plugins(r)
	if err != nil {
		return err
	}
	v := newOverview(rows, agents.Agents, plugins.Plugins, letters, list.Next != "")
	v.Failed, v.Stats = dead.DeadLetters, stats
	c.show(w, r, http.StatusOK, view{Title: "Overview", Nav: navOverview}, overview(v))
	return nil
}

// plugins asks for the list, which a host may not have.
func (c *console) plugins(r *http.Request) (pluginList, error) {
	list, err := get[pluginList](c, r, "plugins"+most)
	if p := (*Problem)(nil); asProblem(err, &p) && p.Status == http.StatusNotFound {
		return list, nil
	}
	return list, err
}

// mostRows is how many channels the overview lists: the ones that want somebody first.
const mostRows = 12

// mostProblems is how many dead letters it lists.
const mostProblems = 5

func newOverview(rows []channelRow, agents []api.Agent, plugins []api.Plugin, dead api.DeadCounts, more bool) overviewView {
	v := overviewView{}
	away := map[string]bool{}
	for _, a := range agents {
		if is := agentCondition(a); a.Enabled && !a.Away && a.Turns.FailedInRow > 0 {
			if f := a.Turns.LastFailure; f != nil {
				is.Why += fmt.Sprintf(" %s: %.200s", reasons[f.Reason].Word, f.Detail)
			}
			v.Concerns = append(v.Concerns, concern{is, "Agent " + a.Name, where("agents", a.Name)})
		}
		if a.Away && a.Enabled {
			away[a.Name] = true
			v.Concerns = append(v.Concerns, concern{condition{warning, "away", "It can't be asked. Messages for it wait."}, "Agent " + a.Name, where("agents", a.Name)})
		}
	}
	for _, p := range plugins {
		if p.State == "quarantined" || p.State == "backoff" {
			v.Concerns = append(v.Concerns, concern{pluginCondition(p), "Plugin " + p.Name, where("plugins", p.Name)})
		}
	}
	attached, slots, waits := 0, 0, 0
	for _, row := range rows {
		waits += row.Health.QueueLength
		v.Spoken = v.Spoken || row.Health.LastInboundAt != nil
		if row.Kind == "bridge" {
			v.Begun = true
		}
		if row.Kind != "bridge" && row.Kind != "plugin" || !row.Enabled {
			continue
		}
		slots++
		if row.Adapter != nil {
			attached++
			v.Attached = v.Attached || row.Kind == "bridge"
			if lacksPlatform(row.Health) {
				v.Concerns = append(v.Concerns, concern{row.Is, "Channel " + row.Name, where("channels", row.Name)})
			}
		} else if row.Kind == "bridge" && row.Is.Tone == warning {
			v.Concerns = append(v.Concerns, concern{row.Is, "Channel " + row.Name, where("channels", row.Name)})
		}
	}
	v.Tiles = []tile{
		attachedTile(attached, slots),
		{Name: "Agents away", Value: strconv.Itoa(len(away)), Note: "of " + plural(len(agents), "agent"), Tone: worse(len(away) > 0, warning), Href: Path + "agents"},
		{Name: "Waiting", Value: strconv.Itoa(waits), Note: "messages in queues", Tone: worse(waits > 0, about), Href: Path + "channels"},
		{Name: "Dead letters", Value: counted(dead.Total, dead.Complete), Note: "failed or expired", Tone: worse(dead.Total > 0, fault), Href: Path + "dead"},
	}
	if len(plugins) > 0 {
		v.Tiles = slices.Insert(v.Tiles, 1, pluginTile(plugins))
	}
	slices.SortStableFunc(rows, func(a, b channelRow) int { return urgency(a.Is.Tone) - urgency(b.Is.Tone) })
	v.Rows, v.More = rows[:min(len(rows), mostRows)], more || len(rows) > mostRows
	return v
}

func attachedTile(attached, slots int) tile {
	t := tile{Name: "Adapters attached", Value: strconv.Itoa(attached), Note: fmt.Sprintf("of %d that may be attached", slots), Href: Path + "adapters"}
	switch {
	case slots == 0:
		t.Note = "there is no channel yet"
	case attached == slots:
		t.Tone = good
	default:
		t.Tone = warning
	}
	return t
}

func pluginTile(plugins []api.Plugin) tile {
	running := 0
	tone := good
	wanted := 0
	for _, p := range plugins {
		if p.State != "disabled" {
			wanted++
		}
		if p.State == "running" {
			running++
		}
		if p.State == "quarantined" {
			tone = fault
		}
	}
	if tone == good && running < wanted {
		tone = warning
	}
	if wanted == 0 {
		tone = ""
	}
	return tile{Name: "Plugins running", Value: strconv.Itoa(running), Note: "of " + plural(wanted, "enabled one"), Tone: tone, Href: Path + "plugins"}
}

// worse is the tone where something is so; else a figure has none.
func worse(so bool, t tone) tone {
	if so {
		return t
	}
	return ""
}

// counted is a count of dead letters; one that did not come to its end says so.
func counted(n int64, complete bool) string {
	if complete {
		return digits(n)
	}
	return digits(n) + "+"
}

// urgency orders tones: what wants somebody first.
func urgency(t tone) int { return slices.Index([]tone{fault, warning, about, waiting, good, idle}, t) }
