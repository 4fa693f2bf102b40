package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
)

// uploads is the route by which a file comes that a message of a channel is to
// name.
func (s *server) uploads(mux *http.ServeMux) {
	op := opens(auth.ScopeSend, byChannel, operation("POST", "/channels/{id}/attachments", "upload-attachment",
		"Keep a file, the form's field file, for a message of the channel, which names it by the url of the answer", http.StatusOK))
	op.Parameters = []*huma.Param{{Name: "id", In: "path", Required: true, Description: "Channel id or name", Schema: &huma.Schema{Type: huma.TypeString}}}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: &huma.Schema{Type: huma.TypeObject}}}}
	op.Responses = responses("application/json", 400, 401, 403, 404, 413, 415, 422, 429, 503, 507)
	op.Responses["200"].Content["application/json"].Schema = s.api.OpenAPI().Components.Schemas.Schema(typeOf[attach.Uploaded](), true, op.OperationID+"Answer")
	s.api.OpenAPI().AddOperation(&op)
	mux.HandleFunc("POST /api/v1/channels/{id}/attachments", s.upload)
}

func (s *server) upload(w http.ResponseWriter, r *http.Request) {
	r, h, ok := s.enter(w, r, auth.ScopeSend, byChannel)
	if !ok {
		return
	}
	row, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.handle(w, r, func(w http.ResponseWriter, r *http.Request) error {
		made, err := front.KeepFile(w, r, s.Attachments, row.ID, h.Ref())
		if err != nil {
			return err
		}
		return front.Answer(w, made)
	})
}
