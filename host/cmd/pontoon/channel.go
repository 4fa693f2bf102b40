package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// channelView is a channel as the commands print it.
type channelView struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	On     bool     `json:"enabled"`
	Agent  string   `json:"agent"`
	Agents []string `json:"agents"`
	Queue  bool     `json:"queue"`
	Accept []string `json:"accept_capabilities"`
	Users  []string `json:"allow_users"`
	Days   int      `json:"retention_days"`
	Rate   int      `json:"rate_limit"`
	Token  string   `json:"token"`
	Limits struct {
		Wait     int `json:"ttl_seconds"`
		Length   int `json:"length"`
		Attempts int `json:"attempts"`
	} `json:"queue_limits"`
	Profile wire.Profile `json:"profile"`
	Health  struct {
		Process  *string       `json:"process"`
		Attached bool          `json:"attached"`
		Platform *platformView `json:"platform"`
		Away     bool          `json:"agent_away"`
		AwayAt   *time.Time    `json:"agent_away_since"`
		Queued   int           `json:"queue_length"`
		Waiting  int           `json:"waiting_turns"`
		LastIn   *time.Time    `json:"last_inbound_at"`
		LastSent *time.Time    `json:"last_sent_at"`
		LastAck  *time.Time    `json:"last_ack_at"`

		Confirmed uint64     `json:"confirmed"`
		Refused   uint64     `json:"refused"`
		RefusedAt *time.Time `json:"last_refused_at"`
		Refusal   string     `json:"last_refusal"`
	} `json:"health"`
}

func channelCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "channel", Short: "Manage channels", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(channelCreate(o), channelUpdate(o), channelList(o), channelTest(o),
		channelGet(o, "show NAME", "Show a channel"),
		channelSwitch(o, "enable", "Let adapters attach", true), channelSwitch(o, "disable", "Disconnect the adapter, and refuse new ones", false),
		&cobra.Command{
			Use: "delete NAME", Short: "Delete a channel with its tokens and messages", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := o.client()
				if err != nil {
					return err
				}
				if _, err := c.call(cmd.Context(), http.MethodDelete, "/channels/"+url.PathEscape(args[0]), nil); err != nil || o.json {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Deleted channel %s.\n", clean(args[0]))
				return err
			},
		})
	return cmd
}

func helpOnly(cmd *cobra.Command, _ []string) error {
	return usageError{fmt.Errorf("%s needs a command: %s", cmd.Name(), strings.Join(subNames(cmd), ", "))}
}

func subNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// policyFlags are the flags that create and update share.
type policyFlags struct {
	cmd                   *cobra.Command
	agent                 string
	agents, accept, users []string
	queue                 bool
	ttl                   string
	length, attempts      int
	days, rate            int
}

func (p *policyFlags) add(cmd *cobra.Command) {
	p.cmd = cmd
	f := cmd.Flags()
	f.StringVar(&p.agent, "agent", "echo", "who answers; none = store only")
	f.StringSliceVar(&p.agents, "agents", nil, "whom a conversation may choose (default all)")
	f.StringSliceVar(&p.accept, "accept", nil, "capabilities that adapters may claim (default all)")
	f.StringSliceVar(&p.users, "allow-users", nil, "user ids that may speak (default all)")
	f.BoolVar(&p.queue, "queue", false, "keep messages while no adapter is attached")
	f.StringVar(&p.ttl, "queue-ttl", "", "how long a message may wait for an adapter, such as 90m or 3d (0s = 24h)")
	f.IntVar(&p.length, "queue-length", 0, "how many may wait (0 = 10,000)")
	f.IntVar(&p.attempts, "queue-attempts", 0, "how often a message is tried that the adapter refuses for now (0 = 10)")
	f.IntVar(&p.days, "retention-days", 0, "delete messages that are older than this many days (0 = keep all)")
	f.IntVar(&p.rate, "rate-limit", 0, "frames a second that the adapter may send (0 = 20,000)")
}

// body holds the flags that were given.
func (p *policyFlags) body() (map[string]any, error) {
	ttl, err := seconds("queue-ttl", p.ttl)
	if err := checkFlags(
		err, between("queue-length", p.length, 0, 1_000_000), between("queue-attempts", p.attempts, 0, 1000),
		between("retention-days", p.days, 0, 36_500), between("rate-limit", p.rate, 0, 1_000_000), capabilities("accept", p.accept),
	); err != nil {
		return nil, err
	}
	b, limits := map[string]any{}, map[string]int{}
	for flag, set := range map[string]func(){
		"agent":       func() { b["agent"] = p.agent },
		"agents":      func() { b["agents"] = p.agents },
		"accept":      func() { b["accept_capabilities"] = p.accept },
		"allow-users": func() { b["allow_users"] = p.users },
		"queue":       func() { b["queue"] = p.queue },

		"retention-days": func() { b["retention_days"] = p.days },
		"rate-limit":     func() { b["rate_limit"] = p.rate },

		"queue-ttl":      func() { limits["ttl_seconds"] = ttl },
		"queue-length":   func() { limits["length"] = p.length },
		"queue-attempts": func() { limits["attempts"] = p.attempts },
	} {
		if p.cmd.Flags().Changed(flag) {
			set()
		}
	}
	if len(limits) > 0 {
		b["queue_limits"] = limits
	}
	return b, nil
}

func channelCreate(o *clientOptions) *cobra.Command {
	var p policyFlags
	var kind, token string
	var disabled bool
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a channel; its token is shown once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := p.body()
			if err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			b["name"], b["kind"], b["enabled"] = args[0], kind, !disabled
			if token != "" {
				b["token"] = token
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/channels", b)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v channelView) {
				fmt.Fprintf(w, "id\t%s\nname\t%s\ntoken\t%s\n\nThe token is shown only now. An adapter connects with it to %s.\n", v.ID, v.Name, v.Token, o.url)
			})
		},
	}
	p.add(cmd)
	cmd.Flags().StringVar(&kind, "kind", "bridge", "kind of channel")
	cmd.Flags().StringVar(&token, "token", "", "a token of your own, at least 16 characters (default: one is made)")
	cmd.Flags().BoolVar(&disabled, "disabled", false, "let no adapter in yet")
	return cmd
}

func channelUpdate(o *clientOptions) *cobra.Command {
	var p policyFlags
	var name string
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change a channel; takes effect immediately", Long: "Change a channel. It takes effect immediately. Only what is given changes.", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := p.body()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("name") {
				b["name"] = name
			}
			if len(b) == 0 {
				return usageError{fmt.Errorf("nothing to change: give at least one flag")}
			}
			return patchChannel(cmd, o, args[0], b)
		},
	}
	p.add(cmd)
	for _, name := range []string{"agent", "agents", "accept", "allow-users"} { // what is not given stays as it is
		f := cmd.Flags().Lookup(name)
		f.DefValue, f.Usage = "", strings.ReplaceAll(f.Usage, "(default all)", `("" = all)`)
	}
	cmd.Flags().StringVar(&name, "name", "", "new name")
	return cmd
}

func channelSwitch(o *clientOptions, verb, about string, on bool) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: about, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return patchChannel(cmd, o, args[0], map[string]any{"enabled": on})
		},
	}
}

func patchChannel(cmd *cobra.Command, o *clientOptions, ref string, body map[string]any) error {
	c, err := o.client()
	if err != nil {
		return err
	}
	raw, err := c.call(cmd.Context(), http.MethodPatch, "/channels/"+url.PathEscape(ref), body)
	if err != nil {
		return err
	}
	return show(cmd, o, raw, printChannel)
}

func channelGet(o *clientOptions, use, about string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: about, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/channels/"+url.PathEscape(args[0]), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, printChannel)
		},
	}
}

func printChannel(w io.Writer, v channelView) {
	all := func(list []string) string {
		if len(list) == 0 {
			return "all"
		}
		return strings.Join(list, ", ")
	}
	kept := "for ever"
	if v.Days > 0 {
		kept = fmt.Sprintf("%d days", v.Days)
	}
	most := "20,000 frames a second"
	if v.Rate > 0 {
		most = fmt.Sprintf("%d frames a second", v.Rate)
	}
	fmt.Fprintf(w, "id\t%s\nname\t%s\nkind\t%s\nenabled\t%v\nagent\t%s\nagents\t%s\nqueue\t%v\naccepts\t%s\nusers\t%s\nkept\t%s\nrate limit\t%s\n",
		v.ID, v.Name, v.Kind, v.On, v.Agent, all(v.Agents), v.Queue, all(v.Accept), clean(all(v.Users)), kept, most)
	fmt.Fprintf(w, "queue limits\t%d messages, each for %s and %d attempts\nprofile\t%s\n",
		cmp.Or(v.Limits.Length, delivery.DefaultLength), cmp.Or(time.Duration(v.Limits.Wait)*time.Second, delivery.DefaultTTL),
		cmp.Or(v.Limits.Attempts, delivery.DefaultAttempts), profileOf(v.Profile))
	fmt.Fprintf(w, "agent away\t%s\nqueue length\t%d\nwaiting turns\t%d\n", awaySince(v.Health.Away, v.Health.AwayAt), v.Health.Queued, v.Health.Waiting)
	fmt.Fprintf(w, "process\t%s\nattached\t%v\nplatform\t%s\nlast inbound\t%s\nlast sent\t%s\nlast ack\t%s\n",
		orDash(v.Health.Process), v.Health.Attached, clean(v.Health.Platform.String()), ago(v.Health.LastIn), ago(v.Health.LastSent), ago(v.Health.LastAck))
	fmt.Fprintf(w, "last refused\t%s\nconfirmed\t%d since the host began\nrefused\t%d since the host began\n", strings.TrimSpace(ago(v.Health.RefusedAt)+" "+clean(v.Health.Refusal)), v.Health.Confirmed, v.Health.Refused)
}

// profileOf says what of a profile is set.
func profileOf(p wire.Profile) string {
	raw, err := json.Marshal(p)
	if err != nil || string(raw) == "{}" {
		return "as the adapter says"
	}
	return string(raw)
}

// awaySince says whether an agent is away, and since when.
func awaySince(away bool, since *time.Time) string {
	if !away {
		return "false"
	}
	return "since " + ago(since)
}

func orDash(s *string) string {
	if s == nil {
		return "–"
	}
	return *s
}

func ago(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.Local().Format(time.DateTime)
}

func channelList(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List channels", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/channels", "channels")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Channels []channelView }) {
				fmt.Fprintln(w, "NAME\tKIND\tENABLED\tAGENT\tPROCESS\tATTACHED\tQUEUE\tTURNS\tLAST INBOUND\tLAST SENT\tID")
				for _, ch := range v.Channels {
					fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\t%v\t%d\t%d\t%s\t%s\t%s\n", ch.Name, ch.Kind, ch.On, ch.Agent, orDash(ch.Health.Process), ch.Health.Attached, ch.Health.Queued, ch.Health.Waiting,
						ago(ch.Health.LastIn), ago(ch.Health.LastSent), ch.ID)
				}
			})
		},
	}
}

func channelTest(o *clientOptions) *cobra.Command {
	var conversation string
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Send a test message to the latest conversation", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			b := map[string]any{}
			if cmd.Flags().Changed("conversation") {
				b["conversation_id"] = conversation
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/channels/"+url.PathEscape(args[0])+"/test", b)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				ID, Detail   string
				Conversation string `json:"conversation_id"`
			}) {
				fmt.Fprintf(w, "%s to %s: %s\n", v.ID, clean(v.Conversation), v.Detail)
			})
		},
	}
	cmd.Flags().StringVar(&conversation, "conversation", "", "another conversation")
	return cmd
}
