package agent

import (
	"embed"
	"io/fs"
)

//go:embed assets
var assets embed.FS

// Assets are the files that the echo agent sends; the host serves them below
// /assets/.
func Assets() fs.FS {
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic("agent: " + err.Error()) // the directory is embedded
	}
	return sub
}
