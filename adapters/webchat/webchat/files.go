package webchat

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// What a grant may open, in bytes.
const (
	maxImage = 16 << 20
	maxFile  = 256 << 20
)

// maxName is the longest name of a download in bytes; most systems allow 255.
const maxName = 200

// imageTypes are what browsers show without running anything: not SVG.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// grant lets whoever has the token, 128 random bits, read one file. It lives as
// long as the message that shows it.
type grant struct {
	token string
	path  string
	name  string // of the download
	mime  string // of an image; "" = a download
	info  os.FileInfo
}

// newGrant checks the file and makes its token.
func newGrant(path, name string, image bool) (*grant, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("found %q, expected an absolute path", path)
	}
	g := &grant{token: rand.Text(), path: path, name: fileName(name, path)}
	f, err := g.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	most := int64(maxFile)
	if image {
		most = maxImage
	}
	if g.info.Size() > most {
		return nil, fmt.Errorf("found %d bytes, at most %d are allowed", g.info.Size(), most)
	}
	if !image {
		return g, nil
	}
	head := make([]byte, 512) // what DetectContentType looks at
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	if g.mime = http.DetectContentType(head[:n]); !slices.Contains(imageTypes, g.mime) {
		return nil, fmt.Errorf("found %s, expected one of %s", g.mime, strings.Join(imageTypes, ", "))
	}
	return g, nil
}

// open opens the file, which must be the one that it was at first.
func (g *grant) open() (*os.File, error) {
	info, err := os.Stat(g.path) // before open, which would wait at a pipe
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("found %s, expected a regular file", info.Mode().Type())
	}
	if g.info == nil {
		g.info = info
	}
	f, err := os.Open(g.path)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(g.info, now) || now.Size() > maxFile {
		_ = f.Close()
		return nil, errors.New("the file was replaced since it was sent")
	}
	return f, nil
}

func (g *grant) url() string { return "/files/" + g.token }

// fileName is a name that no browser takes for a path.
func fileName(name, path string) string {
	if name == "" {
		name = filepath.Base(path)
	}
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '_'
		}
		return r
	}, name)
	for len(name) > maxName {
		name = name[:len(name)-1]
	}
	return strings.ToValidUTF8(name, "")
}

// granted finds a grant by its token.
func (s *store) granted(token string) *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[token]
}

// serveFile serves what the host sent by path, for as long as its message is kept.
func (s *site) serveFile(w http.ResponseWriter, r *http.Request) {
	g := s.store.granted(r.PathValue("token"))
	if g == nil {
		http.Error(w, "No such file, or its message is gone.", http.StatusNotFound)
		return
	}
	f, err := g.open()
	if err != nil {
		s.log.Warn("file can't be served", "fault", "host", "err", err)
		http.Error(w, "The file is no longer there.", http.StatusNotFound)
		return
	}
	defer func() { _ = f.Close() }()
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Type", g.mime)
	if g.mime == "" {
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": g.name}))
	}
	http.ServeContent(w, r, "", time.Time{}, f)
}
