-- +goose Up

-- Where an adapter reads on at its platform: its own, committed with the message
-- that brought it. Written at most once a batch.
CREATE TABLE cursor (
    channel INTEGER PRIMARY KEY,
    value   TEXT NOT NULL
) STRICT;

-- +goose Down
DROP TABLE cursor;
