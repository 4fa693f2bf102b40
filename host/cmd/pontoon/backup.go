package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/backup"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

func backupCommand(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write all messages, channels and attachments into one file, also while the host runs", Args: cobra.ExactArgs(1),
		Long: "Write a consistent copy of the database, with the attachments, into FILE (a gzipped tar). The host may run. Keys are not in it:\n" +
			"admin.key and master.key stay yours, tokens are hashes, and secrets are sealed: without the master key they are lost. Try a backup now and then: pontoon restore FILE --data SOMEWHERE.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := backup.Write(cmd.Context(), sqlite.Offline{}, o.data, args[0]); err != nil {
				return err
			}
			return done(cmd, o, map[string]string{"file": args[0]}, "Backup written to "+args[0]+".")
		},
	}
}

func restoreCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup into a data directory that no host uses", Args: cobra.ExactArgs(1),
		Long: "Put a backup into the data directory, which is made if need be. It is checked first, and refused if a host runs there. What is there\n" +
			"is moved aside, and can be removed once the host has come up.",
		RunE: func(cmd *cobra.Command, args []string) error {
			aside, err := backup.Restore(cmd.Context(), sqlite.Offline{}, args[0], o.data)
			if err != nil {
				return err
			}
			text := "Restored to " + o.data + "."
			if aside != "" {
				text += " What was there is in " + aside + "."
			}
			sealed, warning := o.restoredSecrets(cmd.Context())
			if warning != "" {
				text += "\nBut: " + warning
			}
			return done(cmd, o, map[string]string{"data": o.data, "aside": aside, "secrets": sealed, "warning": warning}, text)
		},
	}
	o.masterKeyFlag(cmd)
	return cmd
}

// done says what a command did.
func done(cmd *cobra.Command, o *clientOptions, v map[string]string, text string) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return show(cmd, o, raw, func(w io.Writer, _ map[string]string) { fmt.Fprintln(w, text) })
}
