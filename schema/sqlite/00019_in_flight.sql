-- +goose Up

-- A message that is sent and not acknowledged has the state 7 from now on, and is not on
-- the pending list. Nothing is to be changed: this keeps hosts out that don't know it.
SELECT 7;

-- +goose Down
INSERT OR IGNORE INTO pending (message, channel) SELECT m.id, m.channel FROM message m WHERE m.state = 7;
UPDATE message SET state = 3 WHERE state = 7;
