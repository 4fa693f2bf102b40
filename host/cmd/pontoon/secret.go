package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
)

func secretCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use: "secret", Short: "Manage the secrets that plugins.yaml names, and the key they are sealed with", Args: cobra.NoArgs, RunE: helpOnly,
		Long: "Manage the secrets that ${NAME} in plugins.yaml stands for, and the master key that they and the secrets of agents are sealed with.\n" +
			"No command shows a secret.",
	}
	cmd.AddCommand(secretSet(o), secretList(o), secretDelete(o), secretRotate(o), secretForget(o))
	return cmd
}

func secretSet(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Set a secret to what is typed, or comes on stdin",
		Long: "Set a secret to what is typed, or comes on stdin (a line end behind it is left out). It is never an argument, which everybody\n" +
			"on the machine could read. Plugins that use it get it when plugins.yaml is read again: pontoon plugin reload.",
		Example: "  pontoon secret set IRC_PASSWORD < password.txt",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return errors.New("found more than a name: the secret itself is no argument, which others could read: give it on stdin")
			case len(args) == 0 || strings.Contains(args[0], "="):
				return errors.New("expected the NAME alone: the secret itself comes on stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			value, err := readSecret(cmd)
			if err != nil {
				return err
			}
			if !utf8.ValidString(value) { // else the request would hold something else
				return fmt.Errorf("read secret: found %d bytes that are no UTF-8 text, expected text", len(value))
			}
			raw, err := c.call(cmd.Context(), http.MethodPut, "/secrets/"+url.PathEscape(args[0]), map[string]string{"value": value})
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v api.Secret) {
				fmt.Fprintf(w, "Set %s.\n", v.Name)
				if v.Shadowed {
					fmt.Fprintf(w, "The host's environment has a %s too, which counts before it.\n", v.Name)
				}
				if len(v.UsedBy) > 0 {
					fmt.Fprintf(w, "Used by %s: pontoon plugin reload\n", strings.Join(v.UsedBy, ", "))
				}
			})
		},
	}
}

// exitInterrupted is what shells have for a program that Ctrl-C ended.
const exitInterrupted = 130

// readSecret reads a secret from stdin; who sits at a terminal is asked twice,
// and sees nothing of it.
func readSecret(cmd *cobra.Command) (string, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), api.MaxSecret+3))
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
	}
	tty := int(in.Fd())
	before, err := term.GetState(tty)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	// Nothing ends a read from a terminal, and Ctrl-C must not leave it without echo.
	stop := context.AfterFunc(cmd.Context(), func() {
		_ = term.Restore(tty, before)
		fmt.Fprintln(cmd.ErrOrStderr())
		os.Exit(exitInterrupted)
	})
	defer stop()
	var typed [2]string
	for i, prompt := range []string{"Secret: ", "Again: "} {
		fmt.Fprint(cmd.ErrOrStderr(), prompt)
		b, err := term.ReadPassword(tty)
		fmt.Fprintln(cmd.ErrOrStderr())
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		typed[i] = string(b)
	}
	if typed[0] != typed[1] {
		return "", errors.New("read secret: found two that differ, expected the same twice")
	}
	return typed[0], nil
}

func secretList(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List secrets by name, and where they are used; values are never shown", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/secrets", "secrets")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Secrets []api.Secret }) {
				fmt.Fprintln(w, "NAME\tUSED BY\tCREATED\tCHANGED\tSHADOWED BY ENVIRONMENT")
				for _, s := range v.Secrets {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\n", s.Name, strings.Join(s.UsedBy, ", "), ago(&s.CreatedAt.Time), ago(&s.UpdatedAt.Time), s.Shadowed)
				}
			})
		},
	}
}

func secretDelete(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete a secret; what runs with it keeps it until it starts again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			if _, err := c.call(cmd.Context(), http.MethodDelete, "/secrets/"+url.PathEscape(args[0]), nil); err != nil || o.json {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Deleted secret %s.\n", clean(args[0]))
			return err
		},
	}
}

func secretRotate(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate-key", Short: "Seal everything again with a new master key, while no host runs", Args: cobra.NoArgs,
		Long: "Seal all secrets again with a new master key, while no host runs: all of them or, if it is cut off, none. The former key is kept\n" +
			"beside the new one, under its id, since older backups need it. A key that is in " + secrets.EnvKey + " is changed to the one\n" +
			"in " + secrets.EnvNewKey + "; set the former variable to it afterwards.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := o.rotateKey(cmd.Context())
			if err != nil {
				return err
			}
			raw, err := json.Marshal(r)
			if err != nil {
				return fmt.Errorf("encode result: %w", err)
			}
			return show(cmd, o, raw, func(w io.Writer, r rotated) {
				fmt.Fprintf(w, "Sealed %d secrets with master key %s.\n", r.Sealed, r.Key)
				if r.File == "" {
					fmt.Fprintf(w, "Set %s to what is in %s before the host starts. Backups until now need the former key.\n", secrets.EnvKey, secrets.EnvNewKey)
					return
				}
				fmt.Fprintf(w, "It is in %s: keep a copy of it, apart from backups.\nThe former key is in %s: backups until now need it. Remove it once none is kept, at once if it leaked.\n", r.File, r.Former)
			})
		},
	}
	o.masterKeyFlag(cmd)
	return cmd
}

// rotated is what a change of the master key did.
type rotated struct {
	Sealed int    `json:"sealed"`
	Key    string `json:"key"`
	File   string `json:"file"`
	Former string `json:"former"`
}

// held runs fn, which is what a command does, while no host can use the data
// directory.
func (o *clientOptions) held(command string, fn func() error) (err error) {
	if _, err := os.Stat(o.data); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	release, err := sqlite.Lock(o.data)
	if err != nil {
		return fmt.Errorf("%w: stop that host, run %s again, then start it", err, command)
	}
	defer func() { err = errors.Join(err, release()) }()
	return fn()
}

// offlineChange is the audit line of who has the data directory.
func offlineChange(action string, detail any) ledger.Change {
	b, err := json.Marshal(detail)
	if err != nil {
		b = []byte("{}")
	}
	return ledger.Change{Actor: "command line", Action: action, Detail: b}
}

func (o *clientOptions) rotateKey(ctx context.Context) (r rotated, err error) {
	from := o.masterKey()
	return r, o.held("pontoon secret rotate-key", func() error {
		sealed, err := sqlite.Try(ctx, o.data, nil)
		if err != nil {
			return err
		}
		if _, err := from.Read(); sealed == 0 && errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: there is no master key yet, and nothing to seal again: the first start makes one", err)
		}
		former, _, err := from.Choose(tryData(ctx, o.data))
		if err != nil {
			return err
		}
		next, err := nextKey(from, former)
		if err != nil {
			return err
		}
		r = rotated{Key: next.ID()}
		r.Sealed, err = sqlite.Reseal(ctx, o.data, former, next, offlineChange("secret.rotate-key", map[string]string{"from": former.ID(), "to": next.ID()}), func() error {
			if from.Env != "" {
				return nil
			}
			r.File, r.Former = from.File, from.Former(former)
			return from.Advance(former, next)
		})
		return err
	})
}

// nextKey is a new key, which waits in its file, or the one that the environment
// brings.
func nextKey(from secrets.Source, former *secrets.Key) (*secrets.Key, error) {
	if from.Env == "" {
		return from.Prepare()
	}
	text := os.Getenv(secrets.EnvNewKey)
	if text == "" {
		return nil, fmt.Errorf("the master key is in %s, which no command can change: give the new one in %s, %s", secrets.EnvKey, secrets.EnvNewKey, secrets.Wanted)
	}
	next, err := secrets.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", secrets.EnvNewKey, err)
	}
	if next.ID() == former.ID() {
		return nil, fmt.Errorf("%s: found the key that is in %s already, expected another", secrets.EnvNewKey, secrets.EnvKey)
	}
	return next, nil
}

func secretForget(o *clientOptions) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "forget --yes", Short: "Remove the secrets that the master key does not open, while no host runs", Args: cobra.NoArgs,
		Long: "Remove from the database the secrets that the master key does not open, or all if there is no key: for when the key is lost. The host\n" +
			"starts again then; agents whose secrets are gone are away until they are set again. Without --yes, says what would go.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var gone []string
			err := o.held("pontoon secret forget", func() (err error) {
				gone, err = o.forget(cmd.Context(), yes)
				return err
			})
			if err != nil {
				return err
			}
			raw, err := json.Marshal(map[string]any{"forgotten": gone, "done": yes})
			if err != nil {
				return fmt.Errorf("encode result: %w", err)
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Forgotten []string }) {
				for _, what := range v.Forgotten {
					fmt.Fprintln(w, clean(what))
				}
				if yes {
					fmt.Fprintf(w, "%d secrets forgotten.\n", len(v.Forgotten))
				} else {
					fmt.Fprintf(w, "%d secrets can't be opened. To remove them for good: pontoon secret forget --yes\n", len(v.Forgotten))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	o.masterKeyFlag(cmd)
	return cmd
}

func (o *clientOptions) forget(ctx context.Context, yes bool) ([]string, error) {
	var key sqlite.Sealer // not a nil *seal.Key in it
	switch k, err := o.masterKey().Read(); {
	case err == nil:
		key = k
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return sqlite.Forget(ctx, o.data, key, offlineChange("secret.forget", nil), !yes)
}
