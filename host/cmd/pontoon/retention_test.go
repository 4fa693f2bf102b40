package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

// past fills a data directory as a host would have some days ago.
type past struct {
	t     *testing.T
	dir   string
	store *sqlite.Store
	files *attach.Store
	now   time.Time
}

func newPast(t *testing.T, days int) *past {
	t.Helper()
	p := &past{t: t, dir: filepath.Join(t.TempDir(), "data"), now: time.Now().AddDate(0, 0, -days)}
	var err error
	p.store, err = sqlite.Open(t.Context(), p.dir, sqlite.Options{Now: func() time.Time { return p.now }, Names: attach.Names})
	if err != nil {
		t.Fatal(err)
	}
	if p.files, err = attach.Open(p.dir, attach.Options{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *past) channel(name string) (ledger.Channel, *ledger.Conversation) {
	p.t.Helper()
	row, err := p.store.CreateChannel(p.t.Context(), ledger.Channel{ID: "id-" + name, Name: name, Kind: "bridge", Enabled: true, Agent: "echo"}, nil, ledger.Change{})
	if err != nil {
		p.t.Fatal(err)
	}
	chain, err := p.store.Own(p.t.Context(), row.Key)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := p.store.Conversation(p.t.Context(), chain, "c")
	if err != nil {
		p.t.Fatal(err)
	}
	return row, c.Conversation
}

// file keeps an attachment of the channel.
func (p *past) file(row ledger.Channel, content string) attach.Object {
	p.t.Helper()
	o, err := p.files.PutBytes(p.t.Context(), row.ID, []byte(content), attach.Claim{})
	if err != nil {
		p.t.Fatal(err)
	}
	return o
}

// say commits n messages of this text, each with these attachments.
func (p *past) say(c *ledger.Conversation, n int, text string, files ...attach.Object) {
	p.t.Helper()
	var parts []byte
	if len(files) > 0 {
		list := []map[string]string{{"type": "text", "text": text}}
		for _, f := range files {
			list = append(list, map[string]string{"type": "file", "fileName": f.Name, "mimeType": f.MimeType, "url": f.Ref().Stored()})
		}
		parts, _ = json.Marshal(list)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Add(1)
		p.store.Append(&ledger.Unit{Conversation: c, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: text, Parts: parts}}}, func(r ledger.Result) {
			if r.Err != nil {
				p.t.Error(r.Err)
			}
			wg.Done()
		})
	}
	wg.Wait()
}

// host starts a host there, now.
func (p *past) host(args ...string) *host {
	p.t.Helper()
	if err := p.store.Close(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.files.Close(); err != nil {
		p.t.Fatal(err)
	}
	h := &host{t: p.t, data: p.dir, args: args}
	h.start("127.0.0.1:0")
	return h
}

func (h *host) texts(channel string) []string {
	h.t.Helper()
	var out []string
	for _, r := range h.history(channel) {
		out = append(out, r.Text)
	}
	return out
}

// stored lists the attachments on the disk by what is in them.
func (h *host) stored() []string {
	h.t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(h.data, attach.Dir, attach.Bucket), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".json") {
			return err
		}
		b, err := os.ReadFile(path)
		out = append(out, string(b))
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func TestRetentionByAge(t *testing.T) {
	p := newPast(t, 40)
	row, c := p.channel("short")
	_, keep := p.channel("keep")
	shared, old := p.file(row, "shared"), p.file(row, "old")
	p.say(c, 3, "old", old, shared)
	p.say(keep, 1, "kept", shared)
	p.now = p.now.AddDate(0, 0, 35)
	p.say(c, 2, "young")
	h := p.host()
	if got := h.texts("short"); len(got) != 5 {
		t.Fatalf("found %v", got)
	}
	if out := h.cli("channel", "show", "short"); !strings.Contains(out, "for ever") {
		t.Errorf("show:\n%s", out)
	}
	oldest := h.history("short")[4].ID

	if out := h.cli("channel", "update", "short", "--retention-days", "30"); !strings.Contains(out, "30 days") {
		t.Errorf("update:\n%s", out)
	}
	eventually(t, "the old ones are deleted", func() bool { return slices.Equal(h.texts("short"), []string{"young", "young"}) })
	eventually(t, "the attachment is removed", func() bool { return slices.Equal(h.stored(), []string{"shared"}) })
	if !slices.Equal(h.texts("keep"), []string{"kept"}) {
		t.Errorf("of the other channel there is %v", h.texts("keep"))
	}
	eventually(t, "the host says so", func() bool {
		return strings.Contains(h.errs.String(), `why="older than their channel keeps them" channel=short retention_days=30 count=3`)
	})
	if r := runCommand(t, h.env(), "", "why", oldest); r.code != 1 || !strings.Contains(r.err, "not found") {
		t.Errorf("of a deleted message: %+v", r)
	}

	h.cli("channel", "delete", "keep")
	eventually(t, "the deleted channel's attachments are removed", func() bool { return len(h.stored()) == 0 })
	for days, status := range map[string]int{"-1": 422, "36501": 422, `"30"`: 422, "0": 200} {
		if got, text := h.request("PATCH", "/channels/short", `{"retention_days":`+days+`}`); got != status || status != 200 && !strings.Contains(text, "retention_days") {
			t.Errorf("%s days: %d %s", days, got, text)
		}
	}
	h.cli("channel", "create", "another", "--retention-days", "7")
	var shown struct {
		Days int `json:"retention_days"`
	}
	if h.json(&shown, "channel", "show", "another"); shown.Days != 7 {
		t.Errorf("kept for %d days, expected 7", shown.Days)
	}
}

// A reader that comes back learns that something went in the meantime.
func TestRetentionIsAGap(t *testing.T) {
	p := newPast(t, 3)
	_, c := p.channel("a")
	p.say(c, 3, "old")
	p.now = time.Now()
	p.say(c, 1, "young")
	h := p.host()
	all := h.history("a")
	h.cli("channel", "update", "a", "--retention-days", "1")
	eventually(t, "the old ones are deleted", func() bool { return len(h.history("a")) == 1 })
	for after, gap := range map[string]bool{all[3].ID: true, all[1].ID: false} {
		text := h.streamed(after, "young")
		if strings.Contains(text, "event: gap") != gap {
			t.Errorf("a gap after %s: expected %v in\n%s", after, gap, text)
		}
	}
}

// streamed reads the event stream from behind a message until it shows a text.
func (h *host) streamed(after, until string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/api/v1/events", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Last-Event-ID", after)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var text strings.Builder
	b := make([]byte, 4096)
	for !strings.Contains(text.String(), until) {
		n, err := resp.Body.Read(b)
		text.Write(b[:n])
		if err != nil {
			h.t.Fatalf("event stream: %v after\n%s", err, text.String())
		}
	}
	return text.String()
}

func TestRetentionBySize(t *testing.T) {
	p := newPast(t, 2)
	row, a := p.channel("a")
	_, b := p.channel("b")
	pad := strings.Repeat("x", 40_000)
	p.say(a, 200, "oldest "+pad)
	p.say(a, 1, "with a file "+pad, p.file(row, "file "+strings.Repeat("f", 1<<20)))
	p.say(b, 150, "middle "+pad)
	p.now = p.now.Add(time.Hour)
	p.say(a, 150, "newest "+pad)
	h := p.host("--max-storage", "16MiB")
	eventually(t, "the oldest are deleted", func() bool { return strings.Contains(h.errs.String(), "storage was over its limit") })
	left := map[string]int{}
	for _, text := range append(h.texts("a"), h.texts("b")...) {
		kind, _, _ := strings.Cut(text, " ")
		left[kind]++
	}
	if left["newest"] != 150 || left["middle"] != 150 || left["oldest"] == 0 || left["oldest"] > 150 {
		t.Errorf("left: %v", left)
	}
	r := runCommand(t, nil, "", "serve", "--max-storage", "1MiB", "--data", t.TempDir())
	if r.code != 2 {
		t.Errorf("a limit that is too small: %+v", r)
	}
	oneLine(t, r.err, `--max-storage: found "1MiB", expected 0 or a size from 16MiB`)
}
