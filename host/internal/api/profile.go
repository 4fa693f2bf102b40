package api

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// ProfileBody is what of a wire.Profile is to be set: a merge patch (RFC 7396).
type ProfileBody struct {
	wire.Profile
	sent  bool
	given map[string]json.RawMessage // nil = null was sent, and all of Profile counts
}

// UnmarshalJSON keeps which fields were named. null names all of them.
func (b *ProfileBody) UnmarshalJSON(raw []byte) error {
	*b = ProfileBody{sent: true}
	if string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, &b.given); err != nil {
		return err
	}
	return json.Unmarshal(raw, &b.Profile)
}

// Schema implements huma.SchemaProvider: the fields of a wire.Profile, each of which may
// be null.
func (b *ProfileBody) Schema(r huma.Registry) *huma.Schema {
	s := *huma.SchemaFromType(r, typeOf[wire.Profile]())
	s.Properties = maps.Clone(s.Properties)
	for name, p := range s.Properties {
		one := *p
		one.Nullable = true
		if one.Enum != nil {
			one.Enum = append(slices.Clone(one.Enum), nil)
		}
		s.Properties[name] = &one
	}
	s.Nullable = true
	return &s
}

// over is the profile with what was sent in place of what was there.
func (b *ProfileBody) over(p ledger.Profile) ledger.Profile {
	switch {
	case !b.sent:
		return p
	case b.given == nil:
		return ledger.Profile{}
	}
	for name, field := range map[string]func(){
		"max_text": func() { p.MaxText = b.MaxText }, "markdown": func() { p.Markdown = b.Markdown },
		"max_buttons": func() { p.MaxButtons = b.MaxButtons }, "edit_interval_ms": func() { p.EditIntervalMS = b.EditIntervalMS },
		"parallel": func() { p.Parallel = b.Parallel }, "in_flight": func() { p.InFlight = b.InFlight },
	} {
		if _, ok := b.given[name]; ok {
			field()
		}
	}
	return p
}
