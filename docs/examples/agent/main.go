// Command agent says again what it was told.
package main

import (
	"context"
	"log"
	"os"

	"github.com/pontoon-bridge/pontoon/sdk/agent"
)

func main() {
	a, err := agent.New(agent.Options{URL: os.Getenv("PONTOON_URL"), Key: os.Getenv("PONTOON_AGENT_KEY")},
		func(ctx context.Context, t *agent.Turn) error {
			_, err := t.Reply(ctx, "You said "+t.Text())
			return err
		})
	if err == nil {
		err = a.Run(context.Background()) // over as many connections as that takes
	}
	log.Fatal(err)
}
