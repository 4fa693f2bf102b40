package webchat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// What is kept of files that users attach, all conversations together. The host
// takes files of 25 MiB unless it is told otherwise.
const (
	maxUpload  = 25 << 20
	keptFiles  = 256
	keptBytes  = 256 << 20
	uploadTime = 5 * time.Minute
	// receiving bounds the uploads under way at once.
	receiving = 16
)

// upload is a file that a user attached. The store's mutex guards refs, waits and
// attachment.
type upload struct {
	id    string
	conv  string
	name  string
	mime  string // by its bytes
	grant *grant

	refs       int    // messages that show it
	waits      int    // of these, those that the host does not have
	attachment string // the host's id of it; "" = the host does not have it
}

// uploads are the files that are kept. The store's mutex guards them.
type uploads struct {
	dir   string // of the files; "" = none yet
	byID  map[string]*upload
	order []*upload // oldest first
	kept  int64     // bytes
}

// errFullOfFiles: no more files fit.
var errFullOfFiles = errors.New("too many files wait for the host")

// spool makes an empty file for an upload.
func (s *store) spool() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "pontoon-webchat-")
		if err != nil {
			return nil, fmt.Errorf("keep a file: %w", err)
		}
		s.dir = dir
	}
	return os.CreateTemp(s.dir, "")
}

// keep makes a received file one that a message can name.
func (s *store) keep(conv, path, name string) (*upload, error) {
	g, err := newGrant(path, name, true)
	image := err == nil
	if !image {
		if g, err = newGrant(path, name, false); err != nil {
			return nil, err
		}
	}
	up := &upload{conv: conv, name: g.name, mime: g.mime, grant: g}
	if !image {
		if up.mime, err = sniff(path); err != nil {
			return nil, err
		}
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	up.id = hex.EncodeToString(id[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) >= keptFiles || s.kept+g.info.Size() > keptBytes {
		if !s.evictUpload() {
			return nil, errFullOfFiles
		}
	}
	s.byID[up.id] = up
	s.order = append(s.order, up)
	s.kept += g.info.Size()
	s.files[g.token] = g
	return up, nil
}

func sniff(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	head, err := io.ReadAll(io.LimitReader(f, 512)) // what DetectContentType looks at
	t, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	return t, err
}

// evictUpload drops the oldest that no message still has to bring to the host.
func (s *store) evictUpload() bool {
	for _, up := range s.order {
		if up.waits == 0 {
			s.dropUpload(up)
			return true
		}
	}
	return false
}

func (s *store) dropUpload(up *upload) {
	for i, other := range s.order {
		if other == up {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			s.kept -= up.grant.info.Size()
			break
		}
	}
	delete(s.byID, up.id)
	delete(s.files, up.grant.token)
	_ = os.Remove(up.grant.path) // what stays goes with the directory
}

// release is the end of a message that shows the file.
func (s *store) release(up *upload) {
	if up.refs--; up.refs <= 0 && s.byID[up.id] == up {
		s.dropUpload(up)
	}
}

// find returns the uploads of a conversation, or why they can't be sent.
func (s *store) find(conv string, ids []string) (ups []*upload, why string) {
	for _, id := range ids {
		up := s.byID[id]
		if up == nil || up.conv != conv {
			return nil, "a file is no longer here: attach it again"
		}
		ups = append(ups, up)
	}
	return ups, ""
}

// claimUploads makes the files those of a message.
func (s *store) claimUploads(e *entry, ups []*upload) {
	e.uploads = ups
	for _, up := range ups {
		up.refs++
		up.waits++
		e.Files = append(e.Files, attached{
			ID: up.id, URL: up.grant.url(), Name: up.name, Bytes: up.grant.info.Size(), Image: up.grant.mime != "",
		})
	}
}

// upload brings the file to the host, once.
func (s *store) upload(ctx context.Context, h *sdk.Host, up *upload) (string, error) {
	s.mu.Lock()
	id := up.attachment
	s.mu.Unlock()
	if id != "" {
		return id, nil
	}
	f, err := up.grant.open()
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if id, err = h.Upload(ctx, up.name, up.mime, f); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	up.attachment = id
	return id, nil
}

// forgetUploads removes all files, at the end of Run.
func (s *store) forgetUploads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, up := range s.order {
		delete(s.files, up.grant.token)
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // in the system's directory for what may be left
	}
	s.uploads = uploads{byID: map[string]*upload{}}
}

// serveUpload takes a file that the user attached. The conversation's key comes in
// a header, the file's name in another, as a part of a url.
func (s *site) serveUpload(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Webchat-Key")
	name, err := url.PathUnescape(r.Header.Get("Webchat-Name"))
	switch {
	case r.Header.Get("Origin") == "": // browsers always send it
		http.Error(w, "Origin: absent, expected this page itself.", http.StatusForbidden)
		return
	case !keyForm.MatchString(key):
		http.Error(w, "Webchat-Key: expected 32 hexadecimal digits.", http.StatusForbidden)
		return
	case err != nil || name == "" || len(name) > 1000:
		http.Error(w, "Webchat-Name: expected the file's name.", http.StatusBadRequest)
		return
	case r.ContentLength <= 0:
		http.Error(w, "The file is empty.", http.StatusBadRequest)
		return
	case r.ContentLength > maxUpload:
		http.Error(w, fmt.Sprintf("The file has more than %d MB.", maxUpload>>20), http.StatusRequestEntityTooLarge)
		return
	}
	select {
	case s.receiving <- struct{}{}:
		defer func() { <-s.receiving }()
	default:
		http.Error(w, "Too many files are on their way. Try again in a moment.", http.StatusServiceUnavailable)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime))
	up, err := s.receive(conversationOf(key), name, http.MaxBytesReader(w, r.Body, maxUpload), r.ContentLength)
	if err != nil {
		s.log.Warn("file not taken", "err", err)
		http.Error(w, "The file could not be kept.", http.StatusInsufficientStorage)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(mustJSON(map[string]any{"id": up.id, "name": up.name, "bytes": up.grant.info.Size()})) // the page is told or gone
}

// receive writes the file to the disk and keeps it.
func (s *site) receive(conv, name string, body io.Reader, size int64) (*upload, error) {
	f, err := s.store.spool()
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, body)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, f.Close()); err == nil {
		var up *upload
		if up, err = s.store.keep(conv, f.Name(), name); err == nil {
			return up, nil
		}
	}
	_ = os.Remove(f.Name())
	return nil, err
}
