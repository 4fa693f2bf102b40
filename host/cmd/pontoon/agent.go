package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// agentView is an agent as the commands print it.
type agentView struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Kind    string          `json:"kind"`
	Config  json.RawMessage `json:"config"`
	On      bool            `json:"enabled"`
	BuiltIn bool            `json:"built_in"`
	Away    bool            `json:"away"`
	Since   *time.Time      `json:"away_since"`
	Waiting int             `json:"waiting_turns"`
	Key     string          `json:"key"`
	Secret  string          `json:"secret"`
}

func agentCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "Manage agents", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(agentCreate(o), agentUpdate(o), agentList(o), agentKinds(o), agentKeyCommand(o),
		&cobra.Command{
			Use: "show NAME", Short: "Show an agent", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return callAgent(cmd, o, http.MethodGet, args[0], nil)
			},
		},
		agentSwitch(o, "enable", "Let an agent answer", true), agentSwitch(o, "disable", "Put an agent out; messages for it wait", false),
		&cobra.Command{
			Use: "delete NAME", Short: "Delete an agent with its keys", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				c, err := o.client()
				if err != nil {
					return err
				}
				if _, err := c.call(cmd.Context(), http.MethodDelete, "/agents/"+url.PathEscape(args[0]), nil); err != nil || o.json {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Deleted agent %s.\n", clean(args[0]))
				return err
			},
		})
	return cmd
}

// agentConfig are the flags that say what an agent's config is.
type agentConfig struct {
	file  string
	sets  []string
	unset []string
}

func (a *agentConfig) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.file, "config", "", "file with the config, a JSON object; - reads it from standard input, where others don't see it")
	f.StringArrayVar(&a.sets, "set", nil, "KEY=VALUE of the config, may be repeated; a VALUE that is JSON is taken as such, any other is text")
}

// fields reads the config that the flags make; nil = none was given.
func (a *agentConfig) fields(stdin io.Reader) (map[string]json.RawMessage, error) {
	if a.file == "" && len(a.sets)+len(a.unset) == 0 {
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	if a.file != "" {
		b, err := a.read(stdin)
		if err != nil {
			return nil, fmt.Errorf("read config: %w", err)
		}
		if err := json.Unmarshal(b, &fields); err != nil || fields == nil {
			return nil, fmt.Errorf("%s: found no JSON object, expected one", a.file)
		}
	}
	for _, s := range a.sets {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, usageError{fmt.Errorf("--set: found no KEY=VALUE, expected one such as url=https://example.org/")} // without what was found, which may be a secret
		}
		if fields[key] = json.RawMessage(value); !json.Valid(fields[key]) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("encode --set: %w", err)
			}
			fields[key] = text
		}
	}
	for _, key := range a.unset {
		fields[key] = json.RawMessage("null")
	}
	return fields, nil
}

// maxAgentConfig is more than the host takes: it says what is too large.
const maxAgentConfig = 1 << 20

func (a *agentConfig) read(stdin io.Reader) ([]byte, error) {
	if a.file == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxAgentConfig))
	}
	f, err := os.Open(a.file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxAgentConfig))
}

func agentCreate(o *clientOptions) *cobra.Command {
	var config agentConfig
	var kind, key string
	var disabled bool
	cmd := &cobra.Command{
		Use: "create NAME --kind KIND", Short: "Make an agent; its key, if its kind has one, is shown once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind == "" {
				return usageError{fmt.Errorf("--kind is missing: 'pontoon agent kinds' lists what there is")}
			}
			fields, err := config.fields(cmd.InOrStdin())
			if err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			b := map[string]any{"name": args[0], "kind": kind, "enabled": !disabled}
			if fields != nil {
				b["config"] = fields
			}
			if key != "" {
				b["key"] = key
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/agents", b)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v agentView) {
				fmt.Fprintf(w, "id\t%s\nname\t%s\nkind\t%s\n", v.ID, v.Name, v.Kind)
				if v.Key != "" {
					fmt.Fprintf(w, "key\t%s\n\nThe key is shown only now. The agent connects with it to %s.\n", v.Key, o.url)
				}
				if v.Secret != "" {
					fmt.Fprintf(w, "secret\t%s\n\nThe secret is shown only now. The agent checks with it that a request comes from this host.\n", v.Secret)
				}
			})
		},
	}
	config.add(cmd)
	cmd.Flags().StringVar(&kind, "kind", "", "how the agent is reached")
	cmd.Flags().StringVar(&key, "agent-key", "", "a key of your own, at least 16 characters (default: one is made)")
	cmd.Flags().BoolVar(&disabled, "disabled", false, "don't let it answer yet")
	return cmd
}

func agentUpdate(o *clientOptions) *cobra.Command {
	var config agentConfig
	var name string
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change an agent; it counts at once", Args: cobra.ExactArgs(1),
		Long: "Change an agent; it counts at once. Of the config only what is given changes.",
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := config.fields(cmd.InOrStdin())
			if err != nil {
				return err
			}
			b := map[string]any{}
			if fields != nil {
				b["config"] = fields
			}
			if cmd.Flags().Changed("name") {
				b["name"] = name
			}
			if len(b) == 0 {
				return usageError{fmt.Errorf("nothing to change: give at least one flag")}
			}
			return callAgent(cmd, o, http.MethodPatch, args[0], b)
		},
	}
	config.add(cmd)
	cmd.Flags().StringArrayVar(&config.unset, "unset", nil, "KEY of the config to remove, may be repeated")
	cmd.Flags().StringVar(&name, "name", "", "new name; not while channels are routed to it")
	return cmd
}

func agentSwitch(o *clientOptions, verb, about string, on bool) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: about, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return callAgent(cmd, o, http.MethodPatch, args[0], map[string]any{"enabled": on})
		},
	}
}

// callAgent sends a request about one agent and prints what it is then.
func callAgent(cmd *cobra.Command, o *clientOptions, method, ref string, in any) error {
	c, err := o.client()
	if err != nil {
		return err
	}
	raw, err := c.call(cmd.Context(), method, "/agents/"+url.PathEscape(ref), in)
	if err != nil {
		return err
	}
	return show(cmd, o, raw, func(w io.Writer, v agentView) {
		fmt.Fprintf(w, "id\t%s\nname\t%s\nkind\t%s\nenabled\t%v\nbuilt in\t%v\naway\t%s\nwaiting turns\t%d\nconfig\t%s\n", v.ID, v.Name, v.Kind, v.On, v.BuiltIn, awaySince(v.Away, v.Since), v.Waiting, clean(string(v.Config)))
	})
}

func agentList(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/agents", "agents")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Agents []agentView }) {
				fmt.Fprintln(w, "NAME\tKIND\tENABLED\tBUILT IN\tAWAY\tID")
				for _, a := range v.Agents {
					fmt.Fprintf(w, "%s\t%s\t%v\t%v\t%s\t%s\n", a.Name, a.Kind, a.On, a.BuiltIn, awaySince(a.Away, a.Since), a.ID)
				}
			})
		},
	}
}

func agentKinds(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "kinds", Short: "List the kinds of agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/agents/_kinds", nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				Kinds []struct {
					Kind, About string
					Key         bool
				}
			}) {
				fmt.Fprintln(w, "KIND\tKEY\tABOUT")
				for _, k := range v.Kinds {
					fmt.Fprintf(w, "%s\t%v\t%s\n", k.Kind, k.Key, k.About)
				}
			})
		},
	}
}
