// Command files bridges the terminal, as hello does, and shows what protocol 1.1 adds: a line
// "/file PATH" sends a file, answers are shown while they are made, and what has an address says
// what it is.
package main

import (
	"bufio"
	"context"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

type terminal chan string

func (t terminal) Run(ctx context.Context, h *sdk.Host) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-t:
			e := sdk.Event{SessionKey: "terminal:local:me", UserID: "me", Text: line}
			err := attach(ctx, h, &e)
			if err == nil {
				err = h.Deliver(ctx, e) // nil: the line is on the host's disk
			}
			if err != nil {
				h.Log.Warn("line lost", "err", err)
			}
		}
	}
}

// attach uploads the file that the line names, if it does.
func attach(ctx context.Context, h *sdk.Host, e *sdk.Event) error {
	path, ok := strings.CutPrefix(e.Text, "/file ")
	if !ok {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	kind, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(path)), ";")
	if kind == "" {
		kind = "application/octet-stream"
	}
	id, err := h.Upload(ctx, filepath.Base(path), kind, f)
	e.Text = "a file: " + filepath.Base(path)
	e.Attachments = []wire.Attachment{{AttachmentID: id}}
	return err
}

func (t terminal) Send(_ context.Context, _ sdk.Target, text string) (sdk.Receipt, error) {
	_, err := fmt.Println(text)
	return sdk.Receipt{}, err
}

func (t terminal) SendParts(ctx context.Context, to sdk.Target, text string, parts []message.Part) (sdk.Receipt, error) {
	for _, p := range parts {
		if p.Address() != "" { // text has it too
			text += "\n[" + p.Type + "]"
		}
	}
	return t.Send(ctx, to, text)
}

func (t terminal) Stream(ctx context.Context, to sdk.Target, d sdk.Draft) (sdk.Receipt, error) {
	if !d.Final {
		d.Text = "… " + d.Text
	}
	return t.Send(ctx, to, d.Text)
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
