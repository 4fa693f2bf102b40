package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// MaxConfig bounds an agent's config.
const MaxConfig = 64 << 10

// Kind is one way to reach an agent.
type Kind struct {
	About string
	// Keys says that the agent comes to the host, and shows a key; see
	// auth.Gate.AdmitAgent and Keyed.
	Keys bool
	// Secrets are the fields at the config's top that nobody is shown again.
	Secrets []string
	// Fields describe the config to whoever fills it in, in the order that they
	// are asked for. Check has the last word.
	Fields []Field
	// Fill completes the config of an agent that is about to be made: with a
	// secret that the host makes, which is shown this one time. nil = nothing is
	// made up. What can't be read is left as it is, for Check to refuse.
	Fill func(config json.RawMessage) (filled json.RawMessage, secret string)
	// Check says what is wrong with a config, which is a JSON object, and names
	// the field. nil = the kind has none: only {} will do.
	Check func(config json.RawMessage) error
	// Make makes the agent of a row that is enabled and was checked. If it is an
	// io.Closer it is closed when the row changes or goes, after nobody finds it
	// any more; its turns may still run then.
	Make func(row ledger.Agent) (hub.Agent, error)
}

// Field describes one field of a kind's config.
type Field struct {
	Name     string `json:"name"`
	Type     string `json:"type" enum:"url,secret,secrets,headers,duration,number,networks,json" doc:"How its value is written: secrets is a list of them, headers an object, networks a list of CIDR networks or true for all"`
	Required bool   `json:"required"`
	About    string `json:"about"`
}

// Keyed is implemented by the agents of a kind with keys, to learn when one ends.
// No method blocks.
type Keyed interface {
	// Revoke ends what was opened with the key, at once.
	Revoke(key int64)
	// Expire ends what was opened with another key than this one, at a time.
	Expire(but int64, at time.Time)
}

// Returning is implemented by an agent that has a while to come back before it is away.
type Returning interface {
	// Expect says that the agent was perhaps there when the host stopped, so that the
	// while begins now. Load calls it before anybody else has the agent.
	Expect()
}

// check checks a config by its size, its form and its kind.
func (k Kind) check(config json.RawMessage) error {
	if len(config) > MaxConfig {
		return fmt.Errorf("found %d bytes, expected at most %d", len(config), MaxConfig)
	}
	fields, err := object(config)
	if err != nil {
		return err
	}
	for name := range fields { // which a decoder would take for the secret, and nothing would hide
		for _, secret := range k.Secrets {
			if name != secret && strings.EqualFold(name, secret) {
				return fmt.Errorf("%.80q: unknown field, expected %q", name, secret)
			}
		}
	}
	if k.Check != nil {
		return k.Check(config)
	}
	for name := range fields {
		return fmt.Errorf("%.80q: unknown field: this kind takes none", name)
	}
	return nil
}

// What JSON was found, and what a field expects, as people say it.
var (
	jsonWords = map[string]string{"string": "a string", "number": "a number", "bool": "true or false", "array": "a list", "object": "an object"}
	kindWords = map[reflect.Kind]string{
		reflect.String: "a string", reflect.Int: "a whole number", reflect.Uint: "a whole number that is not negative", reflect.Bool: "true or false",
		reflect.Slice: "a list", reflect.Map: "an object", reflect.Struct: "an object",
	}
)

// Decode reads a config strictly: an unknown field is an error that names it.
func Decode(config json.RawMessage, to any) error {
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // its own text may hold what was found
			found, _, _ := strings.Cut(wrong.Value, " ")
			return fmt.Errorf("%s: found %s, expected %s", strings.TrimPrefix(wrong.Field, "Remote."), jsonWords[found], kindWords[wrong.Type.Kind()])
		}
		if text, ok := strings.CutPrefix(err.Error(), "json: unknown"); ok {
			return errors.New("unknown" + text)
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("found more behind the object, expected nothing")
	}
	return nil
}
