-- +goose Up

-- JSON object: how long, how many and how often messages of the channel may wait
-- for an adapter; what is not in it is the host's default.
ALTER TABLE channel ADD COLUMN queue_limits TEXT NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE channel DROP COLUMN queue_limits;
