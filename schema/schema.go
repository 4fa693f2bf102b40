// Package schema embeds the database migrations, in goose's format. They are
// append-only: a released file never changes.
package schema

import "embed"

// Migrations holds the numbered .sql files.
//
//go:embed *.sql
var Migrations embed.FS
