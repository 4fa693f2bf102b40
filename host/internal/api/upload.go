package api

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

// maxUploadHead bounds what is before and behind the file in an upload.
const maxUploadHead = 64 << 10

// uploads are the routes by which a file comes that a message is to name.
func (s *server) uploads(mux *http.ServeMux) {
	op := opens(auth.ScopeSend, byChannel, operation("POST", "/channels/{id}/attachments", "upload-attachment",
		"Keep a file, the form's field file, for a message of the channel, which names it by the url of the answer", http.StatusOK))
	op.Parameters = []*huma.Param{{Name: "id", In: "path", Required: true, Description: "Channel id or name", Schema: &huma.Schema{Type: huma.TypeString}}}
	s.describe(op, "multipart/form-data", "application/json")
	mux.HandleFunc("POST /api/v1/channels/{id}/attachments", s.channelUpload)
}

// describe adds a POST that is none of huma's operations to the description.
func (s *server) describe(op huma.Operation, takes, gives string) {
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{takes: {Schema: &huma.Schema{Type: huma.TypeObject}}}}
	op.Responses = responses(gives, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
	s.api.OpenAPI().AddOperation(&op)
}

// agentUpload keeps a file for messages of the key.
func (s *server) agentUpload(w http.ResponseWriter, r *http.Request) {
	r, h, ok := s.enter(w, r, auth.ScopeAgentRun, wholeHost)
	if !ok {
		return
	}
	s.upload(w, r, h.Ref())
}

// channelUpload keeps a file for a message of the channel.
func (s *server) channelUpload(w http.ResponseWriter, r *http.Request) {
	r, _, ok := s.enter(w, r, auth.ScopeSend, byChannel)
	if !ok {
		return
	}
	row, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.upload(w, r, row.ID)
}

// upload keeps the file of a multipart form, which is read as it comes, and
// answers with what it is called.
func (s *server) upload(w http.ResponseWriter, r *http.Request, owner string) {
	r.Body = http.MaxBytesReader(w, r.Body, s.Attachments.MaxBytes()+maxUploadHead)
	made, err := s.keepForm(r, owner)
	if err != nil {
		s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(mustJSON(made), '\n')) // the client is told or gone
}

func (s *server) keepForm(r *http.Request, owner string) (attach.Uploaded, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return attach.Uploaded{}, field(http.StatusUnsupportedMediaType, "body", "expected multipart/form-data with a field file", "")
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return attach.Uploaded{}, field(http.StatusUnprocessableEntity, "body.file", "found no such field, expected the file", "")
		}
		if err != nil {
			return attach.Uploaded{}, bodyFault(err)
		}
		if part.FormName() != "file" {
			continue // NextPart reads over it
		}
		return s.keepFile(r.Context(), owner, part)
	}
}

func (s *server) keepFile(ctx context.Context, owner string, part *multipart.Part) (attach.Uploaded, error) {
	made, err := s.Attachments.Upload(ctx, owner, part, attach.Claim{Name: part.FileName(), MimeType: part.Header.Get("Content-Type")})
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return made, bodyFault(err)
	}
	if err != nil {
		if status, ok := attach.Status(err); ok {
			return made, field(status, "body.file", err.Error(), "")
		}
		return made, s.fault(err, "attachment")
	}
	return made, nil
}
