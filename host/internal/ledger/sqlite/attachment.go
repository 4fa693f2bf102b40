package sqlite

import (
	"context"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// SetFiles says who keeps the attachments. Until then those that lose their last
// message stay where they are.
func (s *Store) SetFiles(f ledger.Files) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = f
}

func (s *Store) keeper() ledger.Files {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files
}

// Named tells which of the attachments a message names.
func (s *Store) Named(ctx context.Context, ids []string) ([]string, error) {
	named, err := s.read.NamedAttachments(ctx, ids)
	if err != nil {
		return nil, failed("read who names attachments", err)
	}
	return named, nil
}

// nameFiles writes down which attachments a message names, so that they stay as
// long as it does. A plain text costs nothing here.
func (w *writer) nameFiles(id ledger.MessageID, parts, meta []byte) error {
	if w.names == nil || len(parts)+len(meta) == 0 {
		return nil
	}
	for _, path := range w.names(parts, meta) {
		w.name.text(path)
		w.name.int(int64(id))
		if err := w.name.run(); err != nil {
			return err
		}
	}
	return nil
}

// renameFiles is nameFiles for a message that says something else now.
func (w *writer) renameFiles(id ledger.MessageID, c *ledger.Content) error {
	if w.names == nil {
		return nil
	}
	w.unname.int(int64(id))
	if err := w.unname.run(); err != nil {
		return err
	}
	return w.nameFiles(id, c.Parts, c.Meta)
}

// erase deletes messages with all that hangs on them. It returns the attachments
// that no message names any more.
func erase(ctx context.Context, q *db.Queries, ids []int64) ([]string, error) {
	if err := q.DeleteLives(ctx, ids); err != nil {
		return nil, fmt.Errorf("delete lives: %w", err)
	}
	paths, err := q.DeleteAttachmentsOf(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("delete names of attachments: %w", err)
	}
	if err := q.DeleteMessages(ctx, ids); err != nil {
		return nil, fmt.Errorf("delete messages: %w", err)
	}
	if len(paths) == 0 {
		return nil, nil
	}
	still, err := q.NamedAttachments(ctx, paths)
	if err != nil {
		return nil, failed("read who names attachments", err)
	}
	named := map[string]bool{}
	for _, p := range still {
		named[p] = true
	}
	var gone []string
	for _, p := range paths {
		if !named[p] {
			gone, named[p] = append(gone, p), true // each once
		}
	}
	return gone, nil
}

// dropFiles lets go of attachments that lost their last message. A crash before
// it leaves them to whoever keeps them, who asks Named.
func (s *Store) dropFiles(ids []string) {
	if f := s.keeper(); f != nil && len(ids) > 0 {
		f.Remove(ids)
	}
}
