package sdk

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// store is where a host lets files be put.
type fileStore struct {
	*httptest.Server
	status int
	reason string
	body   chan string
	header chan http.Header
}

func newFileStore(t *testing.T) *fileStore {
	s := &fileStore{status: http.StatusCreated, body: make(chan string, 10), header: make(chan http.Header, 10)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPut || r.ContentLength != int64(len(b)) {
			t.Errorf("%s of %d bytes, %d announced, %v", r.Method, len(b), r.ContentLength, err)
		}
		s.body <- string(b)
		s.header <- r.Header
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, `{"title":"no","detail":"`+s.reason+`"}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *fileStore) grant(id string) string {
	return string(wire.UploadAck{MessageID: id, AttachmentID: "agent-files/a", URL: s.URL + "/put?token=secret", ExpiresAt: "2026-01-01T00:00:00Z"}.Append(nil))
}

// onlyReader hides what else a reader can do.
type onlyReader struct{ io.Reader }

func TestUpload(t *testing.T) {
	h, s := newHost11(t), newFileStore(t)
	a, hosts := handed()
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)
	type result struct {
		id  string
		err error
	}
	upload := func(r io.Reader) chan result {
		c := make(chan result, 1)
		go func() {
			id, err := host.Upload(t.Context(), "a.txt", "text/plain", r)
			c <- result{id, err}
		}()
		return c
	}
	large := strings.Repeat("0123456789", 200_000) // goes through a file
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("skip this, not that"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(11, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r    io.Reader
		want string
	}{
		"string":      {strings.NewReader("text"), "text"},
		"buffer":      {bytes.NewBufferString("text"), "text"},
		"from within": {f, "not that"},
		"small":       {onlyReader{strings.NewReader("text")}, "text"},
		"large":       {onlyReader{strings.NewReader(large)}, large},
	} {
		done := upload(c.r)
		in := p.next(t)
		if in.Type != wire.TypeUpload || in.Later.Name != "a.txt" || in.Later.MimeType != "text/plain" || in.Later.SizeBytes != int64(len(c.want)) {
			t.Fatalf("%s: found %+v", name, in.Later)
		}
		p.write(t, s.grant(in.MessageID))
		if got := receive(t, "PUT", s.body); got != c.want {
			t.Errorf("%s: put %.40q", name, got)
		}
		if got := (<-s.header).Get("Content-Type"); got != "text/plain" {
			t.Errorf("%s: put as %s", name, got)
		}
		if r := receive(t, "Upload", done); r.err != nil || r.id != "agent-files/a" {
			t.Errorf("%s: Upload = %+v", name, r)
		}
	}

	var rejected *RejectedError
	wantRejected := func(c chan result, why string) {
		t.Helper()
		if r := receive(t, "Upload", c); !errors.As(r.err, &rejected) || !strings.Contains(r.err.Error(), why) || !strings.Contains(r.err.Error(), "a.txt") || strings.Contains(r.err.Error(), "secret") {
			t.Errorf("Upload = %+v, want %s", r, why)
		}
	}
	done := upload(strings.NewReader("x"))
	p.write(t, string(wire.UploadAck{MessageID: p.next(t).MessageID, Error: "too large: expected less"}.Append(nil)))
	wantRejected(done, "too large")
	done = upload(strings.NewReader("x"))
	p.write(t, string((&wire.Error{Code: wire.CodeWrongType, Message: "size", Ref: p.next(t).MessageID}).Append(nil)))
	wantRejected(done, "wrong_type")
	s.status, s.reason = http.StatusInsufficientStorage, "the disk is full"
	done = upload(strings.NewReader("x"))
	p.write(t, s.grant(p.next(t).MessageID))
	wantRejected(done, "the disk is full")

	// The connection is lost before the host has answered: the next one is asked.
	s.status = http.StatusCreated
	done = upload(strings.NewReader("x"))
	p.next(t)
	_ = p.conn.Close(wire.CloseDraining, "")
	p = receive(t, "new connection", h.peers)
	p.write(t, s.grant(p.next(t).MessageID))
	if r := receive(t, "Upload", done); r.err != nil {
		t.Errorf("Upload = %+v", r)
	}
	s.Close()
	done = upload(strings.NewReader("x"))
	p.write(t, s.grant(p.next(t).MessageID))
	if r := receive(t, "Upload", done); r.err == nil || strings.Contains(r.err.Error(), "secret") {
		t.Errorf("Upload = %+v", r)
	}
	for _, name := range []string{"", strings.Repeat("x", wire.MaxField+1)} {
		if _, err := host.Upload(t.Context(), name, "text/plain", strings.NewReader("x")); err == nil {
			t.Errorf("name of %d bytes is taken", len(name))
		}
	}
}

func TestUploadNeedsProtocol11(t *testing.T) {
	h := newHost(t)
	a, hosts := handed()
	run(t, h, a, Options{})
	if _, err := receive(t, "Run", hosts).Upload(t.Context(), "a", "text/plain", strings.NewReader("x")); !errors.Is(err, errLacks) {
		t.Errorf("Upload = %v", err)
	}
}
