// Command generate writes the JSON Schema files into sdk/protocol/schemas.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pontoon-bridge/pontoon/sdk/schema"
)

func main() {
	for name, content := range schema.Generate() {
		if err := os.WriteFile(filepath.Join("sdk", "protocol", "schemas", name), content, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
