-- +goose Up

-- What a message on the pending list waits for: 0 its adapter, 1 the adapter's
-- acknowledgement, 2 its agent. A start looks at 1 and 2 alone, without reading the
-- messages of a queue, of which there may be a million.
ALTER TABLE pending ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
UPDATE pending SET kind = 2 WHERE message IN (SELECT p.message FROM pending p JOIN message m ON m.id = p.message WHERE m.direction = 0);
UPDATE pending SET kind = 1 WHERE message IN (SELECT p.message FROM pending p JOIN message m ON m.id = p.message WHERE m.direction = 1 AND m.state IN (3, 7));

-- +goose Down
ALTER TABLE pending DROP COLUMN kind;
