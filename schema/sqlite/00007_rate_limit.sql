-- +goose Up

-- Frames a second that the channel's adapter may send; 0 = the host's default.
ALTER TABLE channel ADD COLUMN rate_limit INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE channel DROP COLUMN rate_limit;
