package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
)

const docs = "../../../docs/"

// sample is a line of the metrics: its name, and the names of its labels.
var sample = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{([^}]*)\})? `)
var labelName = regexp.MustCompile(`([a-z_]+)="`)

// given is what Prometheus adds to every sample of a host.
var given = []string{"instance", "job"}

// samples are the labels of each metric of a page, by its name.
func samples(page string) map[string][]string {
	found := map[string][]string{}
	for _, m := range sample.FindAllStringSubmatch(page, -1) {
		labels := slices.Clone(given)
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		found[m[1]] = labels
	}
	return found
}

// checkExpression looks whether an expression can be read, and whether every metric
// and label that it names is there.
func checkExpression(t *testing.T, where, text string, there map[string][]string) (metrics []string) {
	t.Helper()
	e, err := metricsql.Parse(text)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, text)
		return nil
	}
	grouped := map[string]bool{}
	metricsql.VisitAll(e, func(e metricsql.Expr) {
		switch e := e.(type) {
		case *metricsql.MetricExpr:
			for _, filters := range e.LabelFilterss {
				name := ""
				for _, f := range filters {
					if f.Label == "__name__" {
						name = f.Value
					}
				}
				labels, ok := there[name]
				if !ok && name != "up" { // Prometheus' own
					t.Errorf("%s: no host shows %q: %s", where, name, text)
					continue
				}
				metrics = append(metrics, name)
				for _, f := range filters {
					if f.Label != "__name__" && !slices.Contains(append(labels, given...), f.Label) {
						t.Errorf("%s: %s has no label %s: %s", where, name, f.Label, text)
					}
				}
			}
		case *metricsql.AggrFuncExpr:
			for _, l := range e.Modifier.Args {
				grouped[l] = true
			}
		}
	})
	for label := range grouped {
		if !slices.ContainsFunc(metrics, func(m string) bool { return slices.Contains(there[m], label) }) {
			t.Errorf("%s: none of its metrics has the label %s: %s", where, label, text)
		}
	}
	if len(metrics) == 0 {
		t.Errorf("%s: names no metric: %s", where, text)
	}
	return metrics
}

// TestDashboard: it can be read, and shows what the host shows.
func TestDashboard(t *testing.T) {
	t.Parallel()
	h, _ := busyHost(t)
	_, page := fetch(t, h.url+"/metrics", h.key)
	there := withPlugins(samples(page))
	b, err := os.ReadFile(docs + "grafana/pontoon.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID, Title string
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Annotations struct {
			List []struct{ Name, Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || board.Title != "Pontoon" || len(board.Panels) < 20 {
		t.Errorf("dashboard %q of %d panels", board.Title, len(board.Panels))
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$channel", ".*")
	shown := map[string]bool{}
	check := func(where, text string) {
		for _, name := range checkExpression(t, where, variables.Replace(text), there) {
			shown[name] = true
		}
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: its id %d is another's", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Errorf("panel %q lies over %q, or beside the dashboard", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, q := range p.Targets {
			check("panel "+p.Title, q.Expr)
		}
	}
	for _, a := range board.Annotations.List {
		check("annotation "+a.Name, a.Expr)
	}
	values := regexp.MustCompile(`^label_values\((.+), ([a-z]+)\)$`)
	for _, v := range board.Templating.List {
		if v.Name == "datasource" {
			continue
		}
		if m := values.FindStringSubmatch(v.Definition); m == nil {
			t.Errorf("variable %s: found %s", v.Name, v.Definition)
		} else if names := checkExpression(t, "variable "+v.Name, variables.Replace(m[1]), there); len(names) > 0 && !slices.Contains(there[names[0]], m[2]) {
			t.Errorf("variable %s: %s has no label %s", v.Name, names[0], m[2])
		}
	}
	// What the host counts is to be seen, but for what other metrics say too.
	for name := range there {
		base := regexp.MustCompile(`_(bucket|sum|count|created)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "pontoon_") && !shown[name] && !shown[base] && !shown[base+"_bucket"] && !shown[base+"_sum"] &&
			!slices.Contains([]string{"pontoon_last_backup_timestamp_seconds", "pontoon_scrape_errors"}, name) {
			t.Errorf("%s is nowhere on the dashboard", name)
		}
	}
}

// withPlugins adds what a host with plugins shows.
func withPlugins(there map[string][]string) map[string][]string {
	there["pontoon_plugin_state"] = append([]string{"plugin", "state"}, given...)
	there["pontoon_platform_state"] = append([]string{"channel", "state"}, given...)
	there["pontoon_plugin_restarts_total"] = append([]string{"plugin"}, given...)
	return there
}

// alertRules is a file of rules, as Prometheus reads it.
type alertRules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert       string
			Expr        string
			For         string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// TestAlerts: each rule can be read, is about what the host shows, and has its
// runbook.
func TestAlerts(t *testing.T) {
	t.Parallel()
	h, _ := busyHost(t)
	_, page := fetch(t, h.url+"/metrics", h.key)
	there := withPlugins(samples(page))
	b, err := os.ReadFile(docs + "prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file alertRules
	if err := yaml.UnmarshalWithOptions(b, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	book, err := os.ReadFile(docs + "operations.md")
	if err != nil {
		t.Fatal(err)
	}
	label := regexp.MustCompile(`\$labels\.([a-z]+)`)
	var names []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
			metrics := checkExpression(t, r.Alert, r.Expr, there)
			if r.For != "" {
				if _, err := time.ParseDuration(r.For); err != nil {
					t.Errorf("%s: for: %v", r.Alert, err)
				}
			}
			if s := r.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) {
				t.Errorf("%s: severity %q", r.Alert, s)
			}
			if want := "operations.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
				t.Errorf("%s: runbook %q, want %q", r.Alert, r.Annotations["runbook"], want)
			}
			if r.Annotations["summary"] == "" {
				t.Errorf("%s has no summary", r.Alert)
			}
			for _, m := range label.FindAllStringSubmatch(r.Annotations["summary"], -1) {
				if len(metrics) > 0 && !slices.Contains(append(there[metrics[0]], given...), m[1]) {
					t.Errorf("%s: its summary names the label %s, which it does not have", r.Alert, m[1])
				}
			}
			if !strings.Contains(string(book), "\n### "+r.Alert+"\n") {
				t.Errorf("%s has no section in operations.md", r.Alert)
			}
		}
	}
	if len(names) < 15 {
		t.Errorf("%d rules", len(names))
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Pontoon\w+)$`).FindAllStringSubmatch(string(book), -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("operations.md has a runbook for %s, which is no alarm", m[1])
		}
	}
}

// maxExposure is what systemd-analyze may count at most, of 100: it calls 17 "OK".
const maxExposure = "17"

// TestUnit: systemd takes the unit, and finds it locked.
func TestUnit(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(docs + "systemd/pontoon.service")
	if err != nil {
		t.Fatal(err)
	}
	// Where the program is does not matter here.
	text := strings.Replace(string(b), "/usr/local/bin/pontoon ", pontoonBinary+" ", 1)
	if text == string(b) {
		t.Fatal("the unit does not start /usr/local/bin/pontoon")
	}
	unit := filepath.Join(t.TempDir(), "pontoon.service")
	writeFile(t, unit, text)
	for _, args := range [][]string{
		{"verify", "--man=no", "--recursive-errors=no", unit},
		{"security", "--no-pager", "--offline=true", "--threshold=" + maxExposure, unit},
	} {
		cmd := exec.Command("systemd-analyze", args...)
		out, err := cmd.CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// The command is one that the host takes.
	command := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/pontoon (.+)$`).FindStringSubmatch(string(b))
	if command == nil {
		t.Fatal("no ExecStart")
	}
	words := append(strings.Fields(command[1]), "--help")
	if r := runCommand(t, nil, "", words...); r.code != 0 {
		t.Errorf("pontoon %s: %+v", command[1], r)
	}
}
