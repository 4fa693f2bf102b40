package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

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
	all, err := get[api.ChannelSummary](c, r, "channels", "_summary?limit="+strconv.Itoa(mostRows))
	if err != nil {
		return err
	}
	letters, err := get[api.DeadCounts](c, r, "dead-letters", "counts")
	if err != nil {
		return err
	}
	agents, err := c.allAgents(r)
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
	v := newOverview(all, c.channelRows(all.First, letters), agents, plugins.Plugins, letters, c.Now())
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

func newOverview(all api.ChannelSummary, rows []channelRow, agents []api.Agent, plugins []api.Plugin, dead api.DeadCounts, now time.Time) overviewView {
	v := overviewView{
		Rows: rows, More: all.Channels > len(rows), Begun: all.Bridges > 0, Attached: all.BridgesTaken > 0, Spoken: all.Spoken > 0,
	}
	away := 0
	for _, a := range agents {
		is := agentCondition(a)
		if !a.Enabled || !a.Away && a.Turns.FailedInRow == 0 {
			continue
		}
		if a.Away {
			away++
		} else if f := a.Turns.LastFailure; f != nil {
			is.Why += fmt.Sprintf(" %s: %.200s", reasons[f.Reason].Word, f.Detail)
		}
		v.Concerns = append(v.Concerns, concern{is, "Agent " + a.Name, where("agents", a.Name)})
	}
	for _, p := range plugins {
		if p.State == "quarantined" || p.State == "backoff" {
			v.Concerns = append(v.Concerns, concern{pluginCondition(p), "Plugin " + p.Name, where("plugins", p.Name)})
		}
	}
	shown := 0
	for _, row := range rows {
		switch row.Trouble(now) {
		case api.NoTrouble:
			continue
		case api.Quarantined, api.Restarting, api.AgentAway: // processes and agents are listed themselves
		default:
			v.Concerns = append(v.Concerns, concern{row.Is, "Channel " + row.Name, where("channels", row.Name)})
		}
		shown++
	}
	if more := all.Troubled - shown; more > 0 {
		v.Concerns = append(v.Concerns, concern{condition{warning, "more", "They are listed by themselves."}, plural(more, "more channel"), Path + "channels?trouble=true"})
	}
	v.Tiles = []tile{
		attachedTile(all.Attached, all.Slots),
		{Name: "Agents away", Value: strconv.Itoa(away), Note: "of " + plural(len(agents), "agent"), Tone: worse(away > 0, warning), Href: Path + "agents"},
		{Name: "Waiting", Value: strconv.Itoa(all.QueueLength + all.WaitingTurns), Note: waitsWhere(all.QueueLength, all.WaitingTurns), Tone: worse(all.QueueLength+all.WaitingTurns > 0, about), Href: Path + "channels"},
		{Name: "Dead letters", Value: counted(dead.Total, dead.Complete), Note: "failed or expired", Tone: worse(dead.Total > 0, fault), Href: Path + "dead"},
	}
	if len(plugins) > 0 {
		v.Tiles = slices.Insert(v.Tiles, 1, pluginTile(plugins))
	}
	return v
}

// waitsWhere says for what messages wait.
func waitsWhere(queued, turns int) string {
	if turns == 0 {
		return "messages in queues"
	}
	return fmt.Sprintf("messages: %d in queues, %d for agents", queued, turns)
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
