package agui

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Metadata keys beside those of package message.
const (
	MetaRunID   = message.MetaRunID // string: the runId
	MetaPayload = "payload"         // any: the forwardedProps
)

// A form is how the content came, where its parts don't tell.
type form string

const (
	formAbsent form = "absent" // of a tool: there was none
	formNull   form = "null"
	formEmpty  form = "empty" // "" beside tool calls
	formArray  form = "array" // an array of texts, which could be one string
	formAsIs   form = "as-is" // of a tool: the output is no text
)

// keep is what the metadata hold of a message besides its metadata proper.
type keep struct {
	NoID     bool   `json:"noId,omitempty"` // it had no id: one that it has now is ours
	Form     form   `json:"form,omitempty"`
	Fields   object `json:"fields,omitempty"`  // further fields
	Metadata object `json:"metadata,omitzero"` // metadata under names that are the host's; empty = the metadata were
}

// own reports the metadata that are the host's, or what models keep. No client
// may set them and none is told them: attachments, for one, are signed for
// whoever reads the message.
func own(name string) bool { return name == MetaPayload || message.OfHost(name) }

// metadata moves the field of that name to the metadata of the message.
func (k *keep) metadata(c *message.Message) {
	given, err := readObject(k.Fields["metadata"])
	if err != nil {
		return // it stays a field
	}
	delete(k.Fields, "metadata")
	kept := object{}
	for name, raw := range given {
		if own(name) {
			kept[name] = raw
			continue
		}
		set(c, name, raw)
	}
	if len(kept) > 0 || len(given) == 0 {
		k.Metadata = kept
	}
}

// store puts what is kept into the metadata; nothing if there is nothing.
func (k *keep) store(c *message.Message) {
	if len(k.Fields) == 0 {
		k.Fields = nil
	}
	if !reflect.ValueOf(k).Elem().IsZero() {
		set(c, markKey, marshal(k))
	}
}

func set(c *message.Message, name string, raw json.RawMessage) {
	if c.Meta == nil {
		c.Meta = message.Meta{}
	}
	c.Meta[name] = slices.Clone(raw) // it may be a piece of a large message
}

// kept reads what was kept; what can't be read counts as nothing.
func kept(meta message.Meta) keep {
	var k keep
	if _, ok := meta[markKey]; !ok {
		return k
	}
	if json.Unmarshal(meta[markKey], &k) != nil {
		return keep{}
	}
	return k
}

// fields puts what was kept back, where nothing else stands now.
func (k *keep) fields(o object, meta message.Meta) {
	public := object(maps.Clone(k.Metadata))
	for name, raw := range meta {
		if own(name) || !json.Valid(raw) {
			continue
		}
		if public == nil {
			public = object{}
		}
		public[name] = raw
	}
	if public != nil {
		o["metadata"] = public.json()
	}
	for name, raw := range k.Fields {
		if _, there := o[name]; there && (name != "id" || str(raw) != "") {
			continue
		}
		switch {
		case name == "role" || name == "content":
		case name == "toolCalls" && checkCalls(raw) != nil: // not what we kept
		default:
			o[name] = raw
		}
	}
	if k.NoID {
		delete(o, "id")
	}
}
