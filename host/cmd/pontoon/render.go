package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// maxMessageFile bounds what render reads.
const maxMessageFile = 16 << 20

func renderCommand(o *clientOptions) *cobra.Command {
	var request api.RenderRequest
	cmd := &cobra.Command{
		Use: "render FILE", Short: "Show what an adapter would get, without sending it", Args: cobra.ExactArgs(1),
		Long: "Show the frames that an adapter with these capabilities would get for a message, and what is degraded. FILE\n" +
			"holds a message as POST /channels/{id}/messages takes it, an envelope, or an array of parts; - reads standard\n" +
			"input. Needs no host.",
		Example: "  pontoon render --caps text,buttons message.json\n  echo '[{\"type\":\"markdown\",\"markdown\":\"**hi**\"}]' | pontoon render --markdown basic -",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(
				oneOf("markdown", request.Profile.Markdown, "none", "basic", "full"),
				between("max-text", request.Profile.MaxText, 0, 1_000_000), between("max-buttons", request.Profile.MaxButtons, 0, 10_000),
				capabilities("caps", request.Capabilities),
			); err != nil {
				return err
			}
			raw, err := readMessage(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			if err := json.Unmarshal(raw, &request.Content); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			rendered, err := api.Render(request)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			answer, err := json.Marshal(rendered)
			if err != nil {
				return fmt.Errorf("encode result: %w", err)
			}
			return show(cmd, o, answer, func(w io.Writer, v struct {
				Frames   []json.RawMessage
				Degraded []struct{ From, To, Reason string }
			}) {
				for _, f := range v.Frames {
					fmt.Fprintln(w, clean(string(f)))
				}
				for _, n := range v.Degraded {
					fmt.Fprintf(w, "%s → %s\t%s\n", clean(n.From), clean(n.To), clean(n.Reason))
				}
			})
		},
	}
	cmd.Flags().StringSliceVar(&request.Capabilities, "caps", nil, "capabilities of the adapter, with commas; text is always there")
	cmd.Flags().StringVar(&request.Profile.Markdown, "markdown", "none", "markdown that it shows: none, basic or full")
	cmd.Flags().IntVar(&request.Profile.MaxText, "max-text", 0, "longest text of one message in code points (0 = no limit)")
	cmd.Flags().IntVar(&request.Profile.MaxButtons, "max-buttons", 0, "most buttons of one message (0 = no limit)")
	return cmd
}

// readMessage reads a message's JSON; an array is its parts.
func readMessage(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxMessageFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) > maxMessageFile:
		return nil, fmt.Errorf("%s: found more than %d bytes, which is the limit", name, maxMessageFile)
	case len(raw) == 0:
		return nil, errors.New(name + ": found nothing, expected a message's JSON")
	case raw[0] == '[':
		return append(append([]byte(`{"parts":`), raw...), '}'), nil
	}
	return raw, nil
}
