package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// statView is what the command needs of api.Statistics.
type statView struct {
	Channel, Window string
	From, To        time.Time
	Total           statPoint
	Points          []statPoint
}

type statPoint struct {
	Received, Sent, Failed, Refused, Queue int64
	P50                                    *float64 `json:"latency_p50_seconds"`
	P95                                    *float64 `json:"latency_p95_seconds"`
}

func statsCommand(o *clientOptions) *cobra.Command {
	var window string
	cmd := &cobra.Command{
		Use: "stats [CHANNEL]", Short: "Show messages, failures, queue and delivery latency of the last hour or day", Args: cobra.MaximumNArgs(1),
		Long: "Show what happened in a channel, or in all of them, over the last hour (by minutes) or day (by ten minutes).\nEach row has its sum or its most, and a picture of how it went, oldest first.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(oneOf("window", window, "hour", "day")); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			q := url.Values{"window": {window}}
			if len(args) > 0 {
				q.Set("channel", args[0])
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/statistics?"+q.Encode(), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, showStats)
		},
	}
	cmd.Flags().StringVar(&window, "window", "hour", "hour or day")
	return cmd
}

func showStats(w io.Writer, v statView) {
	of := "all channels"
	if v.Channel != "" {
		of = "channel " + clean(v.Channel)
	}
	const layout = "2006-01-02 15:04"
	fmt.Fprintf(w, "%s, from %s to %s\n", of, v.From.Local().Format(layout), v.To.Local().Format("15:04"))
	row := func(name, sum string, of func(statPoint) float64) {
		values := make([]float64, len(v.Points))
		for i, p := range v.Points {
			values[i] = of(p)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, sum, sparkline(values, 60))
	}
	count := func(name string, of func(statPoint) int64) {
		row(name, fmt.Sprint(of(v.Total)), func(p statPoint) float64 { return float64(of(p)) })
	}
	delay := func(name string, of func(statPoint) *float64) {
		sum := "–"
		if d := of(v.Total); d != nil {
			sum = shortTime(*d)
		}
		row(name, sum, func(p statPoint) float64 {
			if d := of(p); d != nil {
				return *d
			}
			return 0
		})
	}
	count("received", func(p statPoint) int64 { return p.Received })
	count("sent", func(p statPoint) int64 { return p.Sent })
	count("failed", func(p statPoint) int64 { return p.Failed })
	count("refused", func(p statPoint) int64 { return p.Refused })
	count("queue, most", func(p statPoint) int64 { return p.Queue })
	delay("latency p50", func(p statPoint) *float64 { return p.P50 })
	delay("latency p95", func(p statPoint) *float64 { return p.P95 })
}

// shortTime is a duration in seconds for people.
func shortTime(seconds float64) string {
	switch {
	case seconds < 0.001:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	}
	return fmt.Sprintf("%.3g s", seconds)
}

// sparkline draws values with at most so many characters: of those that share one
// the largest counts. Nothing is a dot.
func sparkline(values []float64, most int) string {
	const steps = "▁▂▃▄▅▆▇█"
	bars := []rune(steps)
	group := max(1, (len(values)+most-1)/most)
	highest := 0.0
	for _, v := range values {
		highest = max(highest, v)
	}
	var b strings.Builder
	for i := 0; i < len(values); i += group {
		v := 0.0
		for _, one := range values[i:min(i+group, len(values))] {
			v = max(v, one)
		}
		if v <= 0 {
			b.WriteRune('·')
			continue
		}
		b.WriteRune(bars[min(int(v/highest*float64(len(bars))), len(bars)-1)])
	}
	return b.String()
}
