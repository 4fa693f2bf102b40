// Package schema embeds the database migrations, in goose's format, one folder an
// engine. They are append-only: a released file never changes.
package schema

import (
	"embed"
	"io/fs"
)

//go:embed sqlite/*.sql
var files embed.FS

// SQLite holds the numbered .sql files of the SQLite engine.
var SQLite, _ = fs.Sub(files, "sqlite") // the folder is above: there is no error
