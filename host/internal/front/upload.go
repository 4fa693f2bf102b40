package front

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
)

// maxUploadHead bounds what is before and behind the file in an upload.
const maxUploadHead = 64 << 10

// KeepFile keeps the file of a multipart form, its field file, which is read as it
// comes; by is the key that brings it. The error is a *Refusal, or the disk's.
func KeepFile(w http.ResponseWriter, r *http.Request, files *attach.Store, owner, by string) (attach.Uploaded, error) {
	r.Body = http.MaxBytesReader(w, r.Body, files.MaxBytes()+maxUploadHead)
	form, err := r.MultipartReader()
	if err != nil {
		return attach.Uploaded{}, &Refusal{Status: http.StatusUnsupportedMediaType, At: "body", Message: "expected multipart/form-data with a field file"}
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return attach.Uploaded{}, &Refusal{Status: http.StatusUnprocessableEntity, At: "body.file", Message: "found no such field, expected the file"}
		}
		if err != nil {
			return attach.Uploaded{}, BodyRefusal(err)
		}
		if part.FormName() != "file" {
			continue // NextPart reads over it
		}
		made, err := files.Upload(r.Context(), owner, part, attach.Claim{
			Name: part.FileName(), MimeType: part.Header.Get("Content-Type"), By: by, Limit: max(0, r.ContentLength),
		})
		return made, uploadFault(err)
	}
}

func uploadFault(err error) error {
	var large *http.MaxBytesError
	if err == nil {
		return nil
	}
	if errors.As(err, &large) {
		return BodyRefusal(err)
	}
	if status, ok := attach.Status(err); ok {
		return &Refusal{Status: status, At: "body.file", Message: err.Error(), Retry: attach.RetryAfter(err)}
	}
	return fmt.Errorf("keep attachment: %w", err)
}
