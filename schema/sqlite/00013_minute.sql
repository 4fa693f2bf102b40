-- +goose Up

-- What happened in each minute of the last two days, for pictures: one row for each
-- channel that had something to say, and one of all channels together (channel 0).
-- The trigger forgets a deleted channel's.
CREATE TABLE minute (
    channel  INTEGER NOT NULL, -- channel.id; 0 = all
    at       INTEGER NOT NULL, -- its beginning, in minutes since 1970, UTC
    received INTEGER NOT NULL, -- messages stored, from the far end
    sent     INTEGER NOT NULL, -- and to it
    failed   INTEGER NOT NULL, -- messages that failed or expired, in both directions
    refused  INTEGER NOT NULL, -- messages not stored: over the rate, or the disk took none
    queue    INTEGER NOT NULL, -- the most that waited for an adapter at once
    latency  BLOB    NOT NULL, -- counts of how long messages took to the far end, as tally.Counts writes them
    PRIMARY KEY (channel, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX minute_at ON minute (at);
-- +goose StatementBegin
CREATE TRIGGER minute_of_channel AFTER DELETE ON channel
BEGIN DELETE FROM minute WHERE channel = OLD.id; END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER minute_of_channel;
DROP TABLE minute;
