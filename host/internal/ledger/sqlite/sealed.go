package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
)

// Sealer makes text of a secret that only it makes a secret of again, at the same
// place. See seal.Key.
type Sealer interface {
	Seal(secret []byte, place string) (sealed string, err error)
	Open(sealed, place string) (secret []byte, err error)
}

// Sealing is how a store keeps secrets from whoever reads its file.
type Sealing struct {
	// Key chooses what seals. It is called while the data directory is held: try
	// counts what is sealed in the database, and says if a key does not open it
	// (which may be nil: then it only counts).
	Key func(try func(Sealer) (sealed int, err error)) (Sealer, error)
	// Secret tells which fields of an agent's config are secrets. It is not called
	// before an agent is read or written.
	Secret func(kind, field string) bool
}

// vault seals and opens; the zero value leaves everything as it is.
type vault struct {
	key    Sealer // nil = nothing is sealed
	secret func(kind, field string) bool
}

func (o Sealing) open(ctx context.Context, q *db.Queries) (v vault, err error) {
	if o.Key == nil {
		return v, nil
	}
	v.secret = o.Secret
	v.key, err = o.Key(func(key Sealer) (int, error) { return try(ctx, q, key) })
	return v, err
}

// sealedField is what is stored of a secret in a config.
type sealedField struct {
	Sealed *string `json:"$sealed"`
}

var sealedMark = []byte(`"$sealed"`)

// sealedText is what is sealed in a config's field, if something is.
func sealedText(value json.RawMessage) (string, bool) {
	if !bytes.Contains(value, sealedMark) {
		return "", false
	}
	var f sealedField
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if d.Decode(&f) != nil || f.Sealed == nil {
		return "", false
	}
	return *f.Sealed, true
}

// fieldPlace is where a secret of an agent is, which what is sealed is bound to.
func fieldPlace(agent, field string) string { return "agent/" + agent + "/" + field }

// secretPlace is fieldPlace for a secret with a name.
func secretPlace(name string) string { return "secret/" + name }

// sealConfig is a config, in clear, as it is stored. What looks as if it were
// sealed is sealed too: nothing that is stored can be mistaken.
func (v vault) sealConfig(a ledger.Agent) (string, error) {
	stored := config(a.Config)
	if v.key == nil {
		return stored, nil
	}
	return v.each(stored, func(field string, value json.RawMessage) (json.RawMessage, error) {
		if _, alike := sealedText(value); !alike && !v.secret(a.Kind, field) {
			return value, nil
		}
		return v.sealField(a.ID, field, value)
	})
}

func (v vault) sealField(agent, field string, value json.RawMessage) (json.RawMessage, error) {
	text, err := v.key.Seal(value, fieldPlace(agent, field))
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealedField{&text})
}

// openConfig is what sealConfig took. What can't be opened is left out of config,
// and the error names it.
func (v vault) openConfig(uid, stored string) (config string, fault error) {
	if v.key == nil || !bytes.Contains([]byte(stored), sealedMark) {
		return stored, nil
	}
	var faults []error
	config, err := v.each(stored, func(field string, value json.RawMessage) (json.RawMessage, error) {
		text, is := sealedText(value)
		if !is {
			return value, nil
		}
		clear, err := v.key.Open(text, fieldPlace(uid, field))
		if err != nil {
			faults = append(faults, err)
			return nil, nil
		}
		return clear, nil
	})
	return config, errors.Join(append(faults, err)...)
}

// sealLeft seals the secrets of a stored config that are in clear, as an older
// program left them.
func (v vault) sealLeft(row db.AgentConfigsRow) (config string, changed bool, err error) {
	config, err = v.each(row.Config, func(field string, value json.RawMessage) (json.RawMessage, error) {
		if text, is := sealedText(value); is {
			if _, err := v.key.Open(text, fieldPlace(row.Uid, field)); err == nil || !errors.Is(err, secrets.ErrForm) {
				return value, nil // by whichever key: it is nothing in clear
			}
		} else if !v.secret(row.Kind, field) {
			return value, nil
		}
		changed = true
		return v.sealField(row.Uid, field, value)
	})
	return config, changed, err
}

// each replaces the fields of a config; one that becomes nil goes. What is no
// object is left to whoever checks it.
func (v vault) each(stored string, do func(field string, value json.RawMessage) (json.RawMessage, error)) (string, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(stored), &fields) != nil || len(fields) == 0 {
		return stored, nil
	}
	for name, value := range fields {
		now, err := do(name, value)
		switch {
		case err != nil:
			return stored, err
		case now == nil:
			delete(fields, name)
		default:
			fields[name] = now
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return stored, fmt.Errorf("encode config: %w", err)
	}
	return string(b), nil
}

// sealedPage is how many rows are looked at, at a time.
const sealedPage = 500

// eachAgent calls do with every agent.
func eachAgent(ctx context.Context, q *db.Queries, do func(db.AgentConfigsRow) error) error {
	for after := int64(0); ; {
		rows, err := q.AgentConfigs(ctx, db.AgentConfigsParams{After: after, N: sealedPage})
		if err != nil {
			return fmt.Errorf("read agents: %w", err)
		}
		for _, row := range rows {
			after = row.ID
			if err := do(row); err != nil {
				return err
			}
		}
		if len(rows) < sealedPage {
			return nil
		}
	}
}

// eachSecret is eachAgent for secrets.
func eachSecret(ctx context.Context, q *db.Queries, do func(db.Secret) error) error {
	for after := int64(0); ; {
		rows, err := q.Secrets(ctx, db.SecretsParams{After: after, N: sealedPage})
		if err != nil {
			return fmt.Errorf("read secrets: %w", err)
		}
		for _, row := range rows {
			after = row.ID
			if err := do(row); err != nil {
				return err
			}
		}
		if len(rows) < sealedPage {
			return nil
		}
	}
}

// try counts what is sealed. The error wraps seal.ErrKey if something is sealed
// with another key; what is broken costs only its owner, and is none here.
func try(ctx context.Context, q *db.Queries, key Sealer) (sealed int, err error) {
	if sealed, err = tryAgents(ctx, q, key); err != nil {
		return sealed, err
	}
	more, err := trySecrets(ctx, q, key)
	return sealed + more, err
}

func tryAgents(ctx context.Context, q *db.Queries, key Sealer) (sealed int, err error) {
	err = eachAgent(ctx, q, func(row db.AgentConfigsRow) error {
		var foreign error
		_, err := vault{}.each(row.Config, func(field string, value json.RawMessage) (json.RawMessage, error) {
			if text, is := sealedText(value); is {
				sealed++
				foreign = errors.Join(foreign, tryOne(key, text, fieldPlace(row.Uid, field)))
			}
			return value, nil
		})
		return errors.Join(err, foreign)
	})
	return sealed, err
}

func trySecrets(ctx context.Context, q *db.Queries, key Sealer) (sealed int, err error) {
	err = eachSecret(ctx, q, func(row db.Secret) error {
		sealed++
		return tryOne(key, row.Sealed, secretPlace(row.Name))
	})
	return sealed, err
}

func tryOne(key Sealer, text, place string) error {
	if key == nil {
		return nil
	}
	if _, err := key.Open(text, place); errors.Is(err, secrets.ErrKey) {
		return err
	}
	return nil
}
