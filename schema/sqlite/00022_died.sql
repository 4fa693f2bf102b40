-- +goose Up

-- Dead letters by when they died: when they failed or expired, which of one that was
-- stored so is when it was made, as its id tells. ledger/sqlite/dead.go asks for them in
-- the same words.
CREATE INDEX message_died ON message (coalesce(settled_at, (id >> 22) + 1704067200000), id) WHERE state IN (5, 6);

-- +goose Down
DROP INDEX message_died;
