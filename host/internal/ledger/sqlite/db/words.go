package db

import "context"

// Words are a message's row of the table search, of which sqlc does not know that
// it has a rowid.
type Words struct {
	ID                  int64
	Text, Author, Place string
}

// InsertWords puts messages into the index.
func (q *Queries) InsertWords(ctx context.Context, rows []Words) (err error) {
	if len(rows) == 0 {
		return nil
	}
	s, err := q.db.PrepareContext(ctx, "INSERT INTO search (rowid, text, author, place) VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	for _, r := range rows {
		if _, err := s.ExecContext(ctx, r.ID, r.Text, r.Author, r.Place); err != nil {
			return err
		}
	}
	return nil
}

// SearchBefore lists up to n messages between two ids that the index has for a
// query, newest first.
func (q *Queries) SearchBefore(ctx context.Context, query string, after, before int64, n int) ([]int64, error) {
	rows, err := q.db.QueryContext(ctx, "SELECT rowid FROM search WHERE search MATCH ? AND rowid > ? AND rowid < ? ORDER BY rowid DESC LIMIT ?", query, after, before, n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return out, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
}

// MergeWords does a piece of what makes deleted words leave the file; false once
// there is nothing left to do.
func (q *Queries) MergeWords(ctx context.Context, pages int) (worked bool, err error) {
	var before, after int64
	if err := q.db.QueryRowContext(ctx, "SELECT total_changes()").Scan(&before); err != nil {
		return false, err
	}
	if _, err := q.db.ExecContext(ctx, "INSERT INTO search (search, rank) VALUES ('merge', ?)", pages); err != nil {
		return false, err
	}
	if err := q.db.QueryRowContext(ctx, "SELECT total_changes()").Scan(&after); err != nil {
		return false, err
	}
	return after-before >= 2, nil // by its documentation: less means that it did nothing
}
