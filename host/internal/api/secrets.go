package api

import (
	"context"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// MaxSecret bounds a secret, in bytes: a private key with its certificates fits.
const MaxSecret = 64 << 10

// Secret is a secret without its value, which nobody is shown.
type Secret struct {
	Name      string   `json:"name"`
	UsedBy    []string `json:"used_by" doc:"Plugins, as they run, whose config has ${NAME} from here"`
	Shadowed  bool     `json:"shadowed" doc:"The host's environment has a variable of this name, which counts before it"`
	CreatedAt Time     `json:"created_at"`
	UpdatedAt Time     `json:"updated_at"`
}

type secretBody struct {
	Value string `json:"value" maxLength:"65536" writeOnly:"true" doc:"Text of 1 to 65,536 bytes; never shown again"`
}

type secretList struct {
	Secrets    []Secret `json:"secrets"`
	NextCursor string   `json:"next_cursor,omitempty"`
}

// SecretRef names a secret.
type SecretRef struct {
	Name string `path:"name" maxLength:"128" doc:"[A-Za-z_][A-Za-z0-9_]*, as in ${NAME}"`
}

func (s *server) secrets() {
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("GET", "/secrets", "list-secrets", "Names of the secrets that plugins.yaml may use, oldest first; values are never shown", 200, 422)), s.listSecrets)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("PUT", "/secrets/{name}", "put-secret", "Set a secret; plugins get it when plugins.yaml is read again", 200, 409, 422)), s.putSecret)
	huma.Register(s.api, opens(auth.ScopeManage, wholeHost, operation("DELETE", "/secrets/{name}", "delete-secret", "Delete a secret; what runs with it keeps it until it starts again", 204, 404)), s.deleteSecret)
}

func (s *server) listSecrets(ctx context.Context, in *Page) (*body[secretList], error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	rows, err := s.Store.Secrets(ctx, after, in.Limit)
	if err != nil {
		return nil, s.fault(err, "secrets")
	}
	out := secretList{Secrets: make([]Secret, len(rows))}
	users := s.secretUsers()
	for i, r := range rows {
		out.Secrets[i] = showSecret(r, users)
	}
	out.NextCursor = in.next(len(rows), func() int64 { return rows[len(rows)-1].ID })
	return &body[secretList]{out}, nil
}

func (s *server) putSecret(ctx context.Context, in *struct {
	SecretRef
	Body secretBody
}) (*body[Secret], error) {
	if err := config.CheckSecretName(in.Name); err != nil {
		return nil, field(422, "path.name", err.Error(), "")
	}
	if v := in.Body.Value; v == "" || len(v) > MaxSecret || !utf8.ValidString(v) {
		return nil, field(422, "body.value", fmt.Sprintf("found %d bytes, expected 1 to %d bytes of text", len(v), MaxSecret), "")
	}
	row, created, err := s.Store.PutSecret(ctx, in.Name, in.Body.Value, s.by(ctx, "secret.set", in.Name, nil))
	if err != nil {
		return nil, s.fault(err, "secrets")
	}
	s.Log.Info("secret set", "secret", row.Name, "new", created)
	return &body[Secret]{showSecret(row, s.secretUsers())}, nil
}

func (s *server) deleteSecret(ctx context.Context, in *SecretRef) (*struct{}, error) {
	if err := s.Store.DeleteSecret(ctx, in.Name, s.by(ctx, "secret.delete", in.Name, nil)); err != nil {
		return nil, s.fault(err, fmt.Sprintf("secret %q", clip(in.Name)))
	}
	s.Log.Info("secret deleted", "secret", in.Name)
	return nil, nil
}

func (s *server) secretUsers() map[string][]string {
	if s.Plugins == nil {
		return nil
	}
	return s.Plugins.Users()
}

func showSecret(r ledger.Secret, users map[string][]string) Secret {
	_, shadowed := os.LookupEnv(r.Name)
	return Secret{Name: r.Name, UsedBy: orEmpty(users[r.Name]), Shadowed: shadowed, CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt)}
}
