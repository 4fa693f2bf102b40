package attach

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Bucket is the one bucket that there is.
const Bucket = "agent-files"

// folder is where in the bucket clients' files are.
const folder = "agent-inputs"

// Directories of the store beside the bucket.
const (
	tempDir     = "tmp"
	reservedDir = "reserved"
)

const (
	maxOwner  = 64 // characters
	maxExt    = 8  // characters
	uuidChars = 36
)

// Ref names an attachment. It is what is stored with a message.
type Ref struct {
	Bucket string `json:"bucket"`
	Path   string `json:"path"`
}

func (r Ref) String() string { return r.Bucket + "/" + r.Path }

// place is where an attachment is on the disk: names that this package made.
type place struct {
	owner string
	file  string // UUID.EXT
}

func newPlace(owner, ext string) place {
	return place{owner: owner, file: uuid.NewString() + "." + ext}
}

func (p place) ref() Ref      { return Ref{Bucket: Bucket, Path: folder + "/" + p.owner + "/" + p.file} }
func (p place) dir() string   { return Bucket + "/" + folder + "/" + p.owner }
func (p place) bytes() string { return p.dir() + "/" + p.file }
func (p place) side() string  { return p.bytes() + ".json" }
func (p place) id() string    { return p.file[:uuidChars] }

// temp is where the bytes are until they are whole. The name says whose they
// are to be, so that Sweep knows what else to remove.
func (p place) temp() string     { return tempDir + "/" + p.owner + "." + p.file }
func (p place) tempSide() string { return p.temp() + ".json" }
func (p place) reserved() string { return reservedDir + "/" + p.id() + ".json" }

// placeOfTemp is the inverse of temp, and of tempSide (side), of the last segment.
func placeOfTemp(name string) (p place, side, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) == 4 && parts[3] == "json" {
		parts, side = parts[:3], true
	}
	if len(parts) != 3 {
		return place{}, false, false
	}
	p = place{parts[0], parts[1] + "." + parts[2]}
	return p, side, checkOwner(p.owner) == nil && isFile(p.file)
}

// place finds where the attachment would be. ErrTraversal if the path is no
// plain one, ErrNotFound if nothing of that form is ever stored.
func (r Ref) place() (place, error) {
	segments := strings.Split(r.Path, "/")
	for _, s := range append([]string{r.Bucket}, segments...) {
		if why := fault(s); why != "" {
			return place{}, fmt.Errorf("%w: found %s, expected plain names", ErrTraversal, why)
		}
	}
	if r.Bucket != Bucket {
		return place{}, fmt.Errorf("%w: found an unknown bucket, expected %s", ErrNotFound, Bucket)
	}
	if len(segments) != 3 || segments[0] != folder || checkOwner(segments[1]) != nil || !isFile(segments[2]) {
		return place{}, fmt.Errorf("%w: found a path of another form, expected %s/OWNER/UUID.EXT", ErrNotFound, folder)
	}
	return place{segments[1], segments[2]}, nil
}

// fault says what is wrong with a segment of a path, decoded once; "" = nothing.
func fault(segment string) string {
	switch {
	case segment == "":
		return "an empty segment"
	case segment == "." || segment == "..":
		return "a dot segment"
	case strings.ContainsAny(segment, `/\`):
		return "a slash within a segment"
	case strings.Contains(segment, "%"):
		return "a second layer of percent-encoding"
	case !utf8.ValidString(segment):
		return "bytes that are not UTF-8"
	case strings.ContainsFunc(segment, unicode.IsControl):
		return "a control character"
	}
	return ""
}

func checkOwner(owner string) error {
	if owner == "" || len(owner) > maxOwner {
		return fmt.Errorf("%w: found %d characters, expected 1 to %d", ErrOwner, len(owner), maxOwner)
	}
	for _, c := range []byte(owner) {
		if !isAlnum(c) && c != '-' && c != '_' {
			return fmt.Errorf("%w: found %q, expected letters, digits, - and _", ErrOwner, c)
		}
	}
	return nil
}

// isFile reports whether the name is one that newPlace makes.
func isFile(name string) bool {
	id, ext, ok := strings.Cut(name, ".")
	if !ok || len(id) != uuidChars || ext == "" || len(ext) > maxExt {
		return false
	}
	u, err := uuid.Parse(id)
	if err != nil || u.String() != id {
		return false
	}
	for _, c := range []byte(ext) {
		if !isAlnum(c) || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
