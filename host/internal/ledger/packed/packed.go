// Package packed reads and writes what a row of the ledger holds as bytes, in the
// words of the protocol and of the message model: who spoke, and metadata. It is apart
// from package ledger, which keeps bytes and imports the standard library alone.
package packed

import (
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Metadata is the message's metadata. An answer to a run of a front end has its
// own id among them, which is known only once it is stored.
func Metadata(e *ledger.Entry) message.Meta {
	meta, _, _ := ReadMetadata(e)
	return meta
}

// ReadMetadata is Metadata, with what message.ReadMeta says of it.
func ReadMetadata(e *ledger.Entry) (meta message.Meta, odd map[string]string, err error) {
	meta, odd, err = message.ReadMeta(e.Meta)
	if _, ok := meta[message.MetaRunID]; ok && e.Direction == ledger.Out {
		meta = meta.With(message.MetaMessageID, e.ID.String())
	}
	return meta, odd, err
}

// EditHandle is what the platform knows the message by, for who changes it: what
// the adapter said when it took it, else its metadata, else its platform id; ""
// if none is known.
func EditHandle(e *ledger.Entry) string {
	if e.Handle != "" {
		return e.Handle
	}
	if h := Metadata(e).String(message.MetaPreviewHandle); h != "" {
		return h
	}
	return e.PlatformID
}
