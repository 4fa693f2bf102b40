package attach

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestParts(t *testing.T) {
	b := newHost(t, Options{})
	o := b.put(t, pngHead, Claim{Name: "a.png"})
	url := b.Sign(o.Ref(), "GET", time.Minute)
	parts := []message.Part{
		message.NewText("look " + url),
		message.NewVision(message.VisionPart{Kind: "input", MimeType: "image/png", URL: url}),
		message.NewAttachment(message.FilePart{FileName: "b", URL: "https://elsewhere.example" + SignPath + "a/b?token=x"}),
	}
	before := string(message.AppendParts(nil, parts))
	stored, err := b.ToStore("owner-1", parts)
	if err != nil {
		t.Fatal(err)
	}
	if got := stored[1].Address(); got != o.Ref().Stored() || stored[2].Address() != parts[2].Address() || string(message.AppendParts(nil, parts)) != before {
		t.Errorf("stored as %s, from %s", message.AppendParts(nil, stored), before)
	}
	kept := string(message.AppendParts(nil, stored))
	again := b.Signed(stored, time.Minute)
	if got, err := b.Parse(again[1].Address()); err != nil || got != o.Ref() || string(message.AppendParts(nil, stored)) != kept {
		t.Errorf("signed again: %v, %v; stored is %s", got, err, message.AppendParts(nil, stored))
	}
	plain := []message.Part{message.NewText("a")}
	if got := b.Signed(plain, 0); &got[0] != &plain[0] {
		t.Error("parts without an address were copied")
	}
	if got := b.Signed(nil, 0); got != nil {
		t.Errorf("of no parts: %v", got)
	}

	for name, c := range map[string]struct {
		url  string
		want error
	}{
		"forged":     {strings.Replace(url, "?token=", "?token=x", 1), ErrForged},
		"traversing": {strings.Replace(url, folder, "%2e%2e", 1), ErrTraversal},
		"as stored":  {o.Ref().Stored(), ErrForged},
	} {
		if _, err := b.ToStore("owner-1", []message.Part{message.NewText(""), message.NewImage(wire.Image{URL: c.url})}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), "parts[1].url") {
			t.Errorf("%s: %v, want %v that names the part", name, err, c.want)
		}
	}
	b.clock.add(2 * time.Minute)
	if _, err := b.ToStore("owner-1", parts); !errors.Is(err, ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	var broken message.Part
	if err := json.Unmarshal([]byte(`{"type":"vision","url":{"x":1}}`), &broken); err != nil {
		t.Fatal(err)
	}
	if got, err := b.ToStore("owner-1", []message.Part{broken}); err != nil || string(got[0].Raw()) != string(broken.Raw()) {
		t.Errorf("url that is none: %v, %v", got, err)
	}
}

func TestOf(t *testing.T) {
	b := newHost(t, Options{})
	o := b.put(t, pngHead, Claim{})
	if got, err := b.Of("owner-1", o.ID()); err != nil || got != o {
		t.Errorf("%+v, %v", got, err)
	}
	r, err := b.Reserve("owner-1", Claim{Name: "x.png", MimeType: "image/png"}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"unfinished": r.Object.ID(), "none": "", "traversing": Bucket + "/../x", "no path": Bucket} {
		if _, err := b.Of("owner-1", id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.Of("other", o.ID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("another's: %v", err)
	}
}

// A message names attachments of its channel alone, or what a key uploaded there.
func TestElsewhere(t *testing.T) {
	b := newHost(t, Options{})
	mine := b.put(t, pngHead, Claim{})
	member, err := b.PutBytes(t.Context(), "7", []byte(pngHead), Claim{})
	if err != nil {
		t.Fatal(err)
	}
	b.KeysUploadTo("owner-1")
	for owner, want := range map[string]error{"owner-1": nil, "owner-2": ErrElsewhere, "owner": ErrElsewhere} {
		for _, o := range []Object{mine, member} {
			_, err := b.ToStore(owner, []message.Part{message.NewImage(wire.Image{URL: b.get(o)})})
			if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "parts[0].url") {
				t.Errorf("%s names %s: %v, want %v", owner, o.ID(), err, want)
			}
		}
	}
}
