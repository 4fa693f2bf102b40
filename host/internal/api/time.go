package api

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Time is a time as the API says it: RFC 3339 in UTC, always with three decimals,
// as message.TimeFormat. So times sort as text, also beside those of messages. A
// field that may be null is a *Time, and says nullable:"true" for the schema.
type Time struct{ time.Time }

// timeOf is t as the API says it.
func timeOf(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// when is timeOf for a time that may be none: the zero time.
func when(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	said := timeOf(t)
	return &said
}

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+message.TimeFormat+`"`), nil
}

// Schema implements huma.SchemaProvider.
func (Time) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}
