package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/program"
)

// What needs no host: it looks at plugins.yaml and at programs.

// pluginFile is the flag of the commands that read plugins.yaml themselves.
type pluginFile struct {
	name string
	cmd  *cobra.Command
	o    *clientOptions
}

func (f *pluginFile) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().StringVar(&f.name, "plugins", config.DefaultPlugins, "file of the adapters that the host runs")
}

// load reads the file. Of a secret of the store only the name counts: what these
// commands look at has no value of one in it.
func (f *pluginFile) load(ctx context.Context) ([]config.Plugin, error) {
	return loadPlugins(f.name, f.cmd.Flags().Changed("plugins"), config.Lookup{Env: os.LookupEnv, Secret: func(name string) (string, bool, error) {
		names, err := sqlite.SecretNames(ctx, f.o.data)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return "", slices.Contains(names, name), err
	}})
}

func pluginHash(o *clientOptions) *cobra.Command {
	file := pluginFile{o: o}
	cmd := &cobra.Command{
		Use: "hash PATH|NAME", Short: "Print the sha256 for plugins.yaml of a program", Args: cobra.ExactArgs(1),
		Long: "Print the sha256 for plugins.yaml of a program, given by its path or by a plugin's name. That of a binary is\n" +
			"what sha256sum prints. That of a script with other files beside it covers its whole directory. Needs no host.",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, sum, err := hashOf(cmd.Context(), args[0], &file)
			if err != nil {
				return err
			}
			if o.json {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
					SHA256 string `json:"sha256"`
					Path   string `json:"path"`
					Tree   bool   `json:"tree"`
					Files  int    `json:"files"`
					Bytes  int64  `json:"bytes"`
				}{sum.Hex, path, sum.Tree, sum.Files, sum.Bytes})
			}
			if sum.Tree {
				fmt.Fprintf(cmd.ErrOrStderr(), "covers all %d files of %s\n", sum.Files, sum.Of)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", sum.Hex, path)
			return err
		},
	}
	file.add(cmd)
	return cmd
}

func hashOf(ctx context.Context, ref string, file *pluginFile) (path string, sum program.Sum, err error) {
	if _, err := os.Lstat(ref); err == nil {
		sum, err := program.Hash(ref)
		return ref, sum, err
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", sum, err
	}
	if config.CheckName(ref) != nil {
		return "", sum, fmt.Errorf("%s: no such file", ref) // nor can a plugin be called so
	}
	all, err := file.load(ctx)
	if err != nil {
		return "", sum, fmt.Errorf("%s is no file, and no plugin can be looked up: %w", ref, err)
	}
	self, err := os.Executable()
	if err != nil {
		return "", sum, fmt.Errorf("find own program: %w", err)
	}
	for _, p := range all {
		if p.Name == ref {
			return program.HashOf(p, self)
		}
	}
	return "", sum, fmt.Errorf("%s: found neither such a file nor a plugin of that name in %s", ref, file.name)
}

// verdictView is one plugin's program, checked.
type verdictView struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Reason string `json:"reason"`
}

func pluginVerify(o *clientOptions) *cobra.Command {
	file := pluginFile{o: o}
	var require bool
	cmd := &cobra.Command{
		Use: "verify [NAME…]", Short: "Check plugins' programs as a start would",
		Long: "Check the programs of plugins.yaml, or of the plugins named, as a start would. Exits with 1 if one may not run.\nNeeds no host.",
		RunE: func(cmd *cobra.Command, names []string) error {
			all, err := file.load(cmd.Context())
			if err != nil {
				return err
			}
			out, err := verifyPlugins(all, names, require, file.name)
			if err != nil {
				return err
			}
			raw, err := json.Marshal(map[string]any{"plugins": out})
			if err != nil {
				return fmt.Errorf("encode result: %w", err)
			}
			err = show(cmd, o, raw, func(w io.Writer, v struct{ Plugins []verdictView }) {
				for _, p := range v.Plugins {
					if p.OK {
						fmt.Fprintf(w, "%s\tok\t%s\n", p.Name, clean(p.Found))
					} else {
						fmt.Fprintf(w, "%s\trefused\t%s\n", p.Name, clean(p.Reason))
					}
				}
			})
			if err == nil && slices.ContainsFunc(out, func(v verdictView) bool { return !v.OK }) {
				return exitError(1)
			}
			return err
		},
	}
	file.add(cmd)
	cmd.Flags().BoolVar(&require, "require-checksums", false, "refuse what is not pinned, as serve --require-checksums does")
	return cmd
}

func verifyPlugins(all []config.Plugin, names []string, require bool, file string) ([]verdictView, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p config.Plugin) bool { return p.Name == name }) {
			return nil, fmt.Errorf("no plugin %q in %s", clean(name), file)
		}
	}
	out := []verdictView{}
	for _, p := range all {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		v := verdictView{Name: p.Name}
		if v.Found, err = program.Verify(p, self, require); err != nil {
			v.Reason = err.Error()
		}
		v.OK = err == nil
		out = append(out, v)
	}
	return out, nil
}
