// Command hello bridges the terminal: lines typed go to the host, answers are printed.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/pontoon-bridge/pontoon/sdk"
)

type terminal chan string

func (t terminal) Run(ctx context.Context, h *sdk.Host) (err error) {
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case line := <-t:
			err = h.Deliver(ctx, sdk.Event{SessionKey: "terminal:local:me", UserID: "me", Text: line})
		}
	}
	return err
}

func (t terminal) Send(_ context.Context, _ sdk.Target, text string) (sdk.Receipt, error) {
	_, err := fmt.Println(text)
	return sdk.Receipt{}, err
}

func main() {
	t := make(terminal)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			t <- in.Text()
		}
	}()
	sdk.Main("terminal", t)
}
