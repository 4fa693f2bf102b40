package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
)

// messageView is a message as the commands print it.
type messageView struct {
	ID           string    `json:"id"`
	Direction    string    `json:"direction"`
	Conversation string    `json:"conversation_id"`
	Author       string    `json:"author"`
	Text         string    `json:"text"`
	State        string    `json:"state"`
	Reason       string    `json:"reason"`
	TS           time.Time `json:"ts"`
	Parts        []struct{ Type string }
	Degraded     []struct{ From, To, Reason string }
	Message      struct {
		Status string `json:"status"`
	} `json:"message"`
}

func (m messageView) print(w io.Writer) {
	arrow := map[string]string{"in": "→", "out": "←"}[m.Direction]
	author := m.Author
	if author == "" && m.Direction == "out" {
		author = "pontoon"
	}
	state := m.State
	if m.Reason != "" {
		state += "/" + m.Reason
	}
	fmt.Fprintf(w, "%s  %s  %s %s  %s: %s%s  (%s)\n", m.TS.Local().Format(time.DateTime), m.ID, arrow, clean(m.Conversation), clean(author), clean(m.kinds()), clean(unsigned(m.Text)), state)
}

// kinds says of which parts a message is; "" = of text alone.
func (m messageView) kinds() string {
	var names []string
	for _, p := range m.Parts {
		if p.Type != "text" && !slices.Contains(names, p.Type) {
			names = append(names, p.Type)
		}
	}
	if names == nil {
		return ""
	}
	return "[" + strings.Join(names, ", ") + "] "
}

// signature is that of an attachment's url, which opens it for whoever has it.
var signature = regexp.MustCompile(`(` + regexp.QuoteMeta(attach.SignPath) + `[^\s?]*\?token=)[\w.~%=+-]+`)

// unsigned is a text for a terminal: urls of attachments in it don't open them.
func unsigned(text string) string { return signature.ReplaceAllString(text, "${1}…") }

func messagesCommand(o *clientOptions) *cobra.Command {
	var conversation string
	var limit int
	var follow bool
	cmd := &cobra.Command{
		Use: "messages CHANNEL", Short: "Show a channel's messages, oldest first", Args: cobra.ExactArgs(1),
		Long: "Show a channel's newest messages, oldest first. With --json, one JSON value as the API gives it, newest first;\nwith --follow --json, one message a line.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(between("limit", limit, 1, 500)); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			if cmd.Flags().Changed("conversation") {
				q.Set("conversation_id", conversation)
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/channels/"+url.PathEscape(args[0])+"/messages?"+q.Encode(), nil)
			if err != nil {
				return err
			}
			if o.json && !follow {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), string(raw))
				return err
			}
			f := follower{c: c, w: cmd.OutOrStdout(), json: o.json, query: q}
			if err := f.list(raw); err != nil || !follow {
				return err
			}
			return f.follow(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&conversation, "conversation", "", "only this conversation")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, at most 500")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what comes")
	return cmd
}

// follower prints messages as they come.
type follower struct {
	c     *client
	w     io.Writer
	json  bool
	query url.Values // of the list of messages
	last  string     // id of the newest message seen

	making map[string]bool // ids of answers that were being made when they were seen
}

func (f *follower) show(raw json.RawMessage) error {
	var m messageView
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if m.ID <= f.last {
		return nil
	}
	f.last = m.ID
	if m.Message.Status == "streaming" { // shown when it is made
		if f.making == nil {
			f.making = map[string]bool{}
		}
		f.making[m.ID] = true
		return nil
	}
	return f.print(raw, m)
}

// made shows an answer that was being made when it was first seen. When the stream is
// resumed, it has older messages too.
func (f *follower) made(raw json.RawMessage) error {
	var m messageView
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if !f.making[m.ID] || m.Message.Status == "streaming" {
		return nil
	}
	delete(f.making, m.ID)
	return f.print(raw, m)
}

func (f *follower) print(raw json.RawMessage, m messageView) error {
	if f.json {
		_, err := fmt.Fprintln(f.w, string(raw))
		return err
	}
	m.print(f.w)
	return nil
}

// follow reads the event stream until ctx ends, and resumes it when it breaks.
func (f *follower) follow(ctx context.Context, ref string) error {
	id, err := f.channelID(ctx, ref)
	if err != nil {
		return err
	}
	return reopen(ctx, false, func(ctx context.Context, opened func()) error { return f.stream(ctx, id, opened) })
}

// channelID is what the channel keeps when it is renamed.
func (f *follower) channelID(ctx context.Context, ref string) (string, error) {
	raw, err := f.c.call(ctx, http.MethodGet, "/channels/"+url.PathEscape(ref), nil)
	if err != nil {
		return "", err
	}
	var ch channelView
	if err := json.Unmarshal(raw, &ch); err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return ch.ID, nil
}

// before shows the channel's newest messages.
func (f *follower) before(ctx context.Context, channel string) error {
	q := maps.Clone(f.query)
	q.Set("limit", "500")
	raw, err := f.c.call(ctx, http.MethodGet, "/channels/"+url.PathEscape(channel)+"/messages?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	return f.list(raw)
}

// list shows a page of messages, oldest first.
func (f *follower) list(raw json.RawMessage) error {
	var page struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(raw, &page); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	for _, m := range slices.Backward(page.Messages) {
		if err := f.show(m); err != nil {
			return err
		}
	}
	return nil
}

// stream prints what comes until the event stream breaks; opened is called once
// it is there.
func (f *follower) stream(ctx context.Context, channel string, opened func()) error {
	begin := func() error {
		opened()
		if f.last != "" {
			return nil
		}
		return f.before(ctx, channel) // there is nothing to resume behind: what came before the stream was there?
	}
	q := url.Values{"channel": {channel}}
	if f.query.Has("conversation_id") {
		q.Set("conversation", f.query.Get("conversation_id"))
	}
	return f.c.events(ctx, "/events?"+q.Encode(), f.last, begin, func(event, data string) error {
		switch event {
		case "message.created", "message.state":
			var d struct{ Message json.RawMessage }
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				return err
			}
			switch {
			case event == "message.created":
				return f.show(d.Message)
			case d.Message != nil:
				return f.made(d.Message)
			}
		case "gap":
			var d struct{ Reason string }
			_ = json.Unmarshal([]byte(data), &d) // whatever it is, there is a gap
			fmt.Fprintln(os.Stderr, "pontoon: some messages are missing here: "+clean(d.Reason))
		}
		return nil
	})
}

func sendCommand(o *clientOptions) *cobra.Command {
	var card, buttons, image, file string
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "send CHANNEL CONVERSATION [TEXT]", Short: "Send a message to a conversation", Args: cobra.RangeArgs(2, 3),
		Long: "Send a message to a conversation. --card and --buttons take a JSON file (- = standard input), --image and --file a url,\nor the path of a file of this machine, which is uploaded.\n" +
			"sent says that the adapter has it. With --wait, wait until the platform took it, for a minute or as long as --wait=TIME says: exits with 1 if it\ndid not, or nobody said so in time.",
		RunE: func(cmd *cobra.Command, args []string) error {
			b := map[string]any{"conversation_id": args[1]}
			if len(args) == 3 {
				b["text"] = args[2]
			}
			for field, path := range map[string]string{"card": card, "buttons": buttons} {
				if path == "" {
					continue
				}
				raw, err := readJSON(cmd, path)
				if err != nil {
					return fmt.Errorf("--%s: %w", field, err)
				}
				b[field] = raw
			}
			if len(b) == 1 && image == "" && file == "" {
				return usageError{errors.New("nothing to send: give TEXT, --card, --buttons, --image or --file")}
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			for field, where := range map[string]string{"image": image, "file": file} {
				if where == "" {
					continue
				}
				if b[field], err = c.media(cmd.Context(), args[0], field, where); err != nil {
					return fmt.Errorf("--%s: %w", field, err)
				}
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/channels/"+url.PathEscape(args[0])+"/messages", b)
			if err != nil {
				return err
			}
			if wait > 0 {
				return waitSent(cmd, o, c, raw, wait)
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				ID, State string
				Degraded  []struct{ From, To, Reason string }
			}) {
				fmt.Fprintf(w, "%s %s\n", v.ID, v.State)
				for _, d := range v.Degraded {
					fmt.Fprintf(w, "%s shown as %s: %s\n", d.From, d.To, d.Reason)
				}
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait for the platform's word")
	cmd.Flags().Lookup("wait").NoOptDefVal = time.Minute.String()
	cmd.Flags().StringVar(&card, "card", "", "card from a JSON file")
	cmd.Flags().StringVar(&buttons, "buttons", "", "rows of buttons from a JSON file")
	cmd.Flags().StringVar(&image, "image", "", "picture by url or path")
	cmd.Flags().StringVar(&file, "file", "", "document by url or path")
	return cmd
}

func readJSON(cmd *cobra.Command, path string) (json.RawMessage, error) {
	var b []byte
	var err error
	if path == "-" {
		b, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxAnswer))
	} else {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	if !json.Valid(b) {
		return nil, fmt.Errorf("%s is not valid JSON", path)
	}
	return b, nil
}
