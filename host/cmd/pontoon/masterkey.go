package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
)

// masterKeyFlag is that of the commands which seal or open secrets.
func (o *clientOptions) masterKeyFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.masterKeyFile, "master-key-file", os.Getenv(secrets.EnvKeyFile),
		"file of the key that secrets are sealed with ("+secrets.EnvKeyFile+"; default "+secrets.FileName+" in the data directory); the key itself may be in "+secrets.EnvKey)
}

// masterKey is where the master key is.
func (o *clientOptions) masterKey() secrets.Source {
	return secrets.SourceIn(o.data, o.masterKeyFile, os.Getenv)
}

// sealing is how the host's store keeps secrets. note is told which file a key was
// made in.
func sealing(from secrets.Source, roster *agent.Roster, note func(file string)) sqlite.Sealing {
	return sqlite.Sealing{
		Secret: roster.Secret,
		Key: func(try func(sqlite.Sealer) (int, error)) (sqlite.Sealer, error) {
			key, made, err := from.Choose(tryKey(try))
			if err != nil {
				return nil, err
			}
			if made {
				note(from.File)
			}
			return key, nil
		},
	}
}

// tryKey is what a key is tried with: no key is no sealer.
func tryKey(try func(sqlite.Sealer) (int, error)) func(*secrets.Key) (int, error) {
	return func(k *secrets.Key) (int, error) {
		if k == nil {
			return try(nil)
		}
		return try(k)
	}
}

// tryData tries a key with the database of a data directory.
func tryData(ctx context.Context, dir string) func(*secrets.Key) (int, error) {
	return tryKey(func(k sqlite.Sealer) (int, error) { return sqlite.Try(ctx, dir, k) })
}

// restoredSecrets says how many secrets a backup brought, and if the key here
// does not open them.
func (o *clientOptions) restoredSecrets(ctx context.Context) (sealed, warning string) {
	from, try := o.masterKey(), tryData(ctx, o.data)
	n, err := try(nil)
	if err != nil {
		return "", "its secrets can't be looked at: " + err.Error()
	}
	if n == 0 {
		return "0", ""
	}
	sealed = fmt.Sprint(n)
	key, err := from.Read()
	if err == nil {
		if _, err = try(key); err == nil {
			return sealed, ""
		}
	}
	what := fmt.Sprintf("the backup holds %d sealed secrets, and no host starts here without their master key: %v", n, err)
	if former, ok := opener(from, try); ok {
		return sealed, what + ". The key is in " + former + ": copy it to " + from.File
	}
	return sealed, what + ". Put it into " + from.File + "; if it is lost: pontoon secret forget"
}

// opener finds, among the former keys beside the key file, the one that opens a
// database.
func opener(from secrets.Source, try func(*secrets.Key) (int, error)) (file string, ok bool) {
	for _, file := range formerKeys(from) {
		if k, err := secrets.ReadFile(file); err == nil {
			if _, err := try(k); err == nil {
				return file, true
			}
		}
	}
	return "", false
}

func formerKeys(from secrets.Source) []string {
	files, err := filepath.Glob(from.File + ".????????????????")
	if err != nil {
		return nil
	}
	return files
}

// checkMasterKey looks at the key that secrets are sealed with.
func checkMasterKey(ctx context.Context, o *clientOptions) []finding {
	const what = "master key"
	if info, err := os.Stat(o.data); err != nil || !info.IsDir() {
		return nil // checkData told it
	}
	from := o.masterKey()
	if checkPlace(o.data) != nil {
		return nil // what it opens is not there: checkDatabase tells it
	}
	sealed, err := sqlite.Try(ctx, o.data, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []finding{{checkWarn, what, "what is sealed can't be looked at: " + err.Error()}}
	}
	key, err := from.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist) && sealed == 0:
		return []finding{{checkWarn, what, from.File + " is not there: a start makes one"}}
	case errors.Is(err, fs.ErrNotExist):
		return []finding{{checkFail, what, fmt.Sprintf("%s is not there, and %d sealed secrets need it: put it back; if it is lost: pontoon secret forget", from.File, sealed)}}
	case err != nil:
		return []finding{{checkFail, what, err.Error()}}
	}
	found := []finding{{checkOK, what, fmt.Sprintf("%s in %s opens the %d sealed secrets", key.ID(), from, sealed)}}
	if sealed == 0 {
		found[0].Detail = fmt.Sprintf("%s in %s; nothing is sealed with it yet", key.ID(), from)
	}
	if _, err := sqlite.Try(ctx, o.data, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		found[0] = finding{checkFail, what, "the key in " + from.String() + " does not open the sealed secrets: " + err.Error()}
	}
	if from.Env == "" {
		if in, ok := amongData(o.data, from.File); ok {
			found = append(found, finding{checkFail, "place of the master key", from.File + " is in " + in + ", which is copied with backups: move it, and give --master-key-file"})
		}
	}
	for _, file := range formerKeys(from) {
		found = append(found, finding{checkWarn, "former master key", file + ": backups of its time need it; remove it once none is kept"})
	}
	return found
}

// amongData reports whether a file is in a directory that goes into backups, or
// that backups are in.
func amongData(data, file string) (in string, ok bool) {
	file, err := filepath.Abs(file)
	if err != nil {
		return "", false
	}
	for _, name := range []string{attach.Dir, "backups"} {
		dir, err := filepath.Abs(filepath.Join(data, name))
		if err == nil && strings.HasPrefix(file, dir+string(filepath.Separator)) {
			return dir, true
		}
	}
	return "", false
}
