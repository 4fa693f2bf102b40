-- +goose Up

-- Of a message that an adapter acknowledges frame by frame: those before this
-- one are, and how often it was tried in vain.
ALTER TABLE pending ADD COLUMN frame INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pending ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;

-- What the platform knows an outbound message by, as the adapter said.
ALTER TABLE message ADD COLUMN handle TEXT;

-- When its state last changed; NULL = never since it was committed.
ALTER TABLE message ADD COLUMN settled_at INTEGER;

-- What happened to a message beside the happy path, for whoever asks why.
CREATE TABLE life (
    id      INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    what    TEXT    NOT NULL,
    detail  TEXT    NOT NULL
) STRICT;
CREATE INDEX life_message ON life (message, id);

-- Dead letters: failed and expired. What is neither costs nothing here.
CREATE INDEX message_dead ON message (id) WHERE state IN (5, 6);

DROP VIEW entry;
CREATE VIEW entry AS
SELECT m.id, m.channel, m.conversation, CAST(coalesce(c.key, '') AS TEXT) AS conversation_key,
       m.prev, m.prev_channel, m.direction, m.state, m.status, m.turn, m.reply_to, m.text, m.parts, m.origin,
       m.meta, m.notes, m.reason, m.platform_id, m.handle, m.settled_at
FROM message m LEFT JOIN conversation c ON c.id = m.conversation;

-- +goose Down
DROP VIEW entry;
DROP INDEX message_dead;
DROP TABLE life;
ALTER TABLE message DROP COLUMN settled_at;
ALTER TABLE message DROP COLUMN handle;
ALTER TABLE pending DROP COLUMN tries;
ALTER TABLE pending DROP COLUMN frame;
CREATE VIEW entry AS
SELECT m.id, m.channel, m.conversation, CAST(coalesce(c.key, '') AS TEXT) AS conversation_key,
       m.prev, m.prev_channel, m.direction, m.state, m.status, m.turn, m.reply_to, m.text, m.parts, m.origin,
       m.meta, m.notes, m.reason, m.platform_id
FROM message m LEFT JOIN conversation c ON c.id = m.conversation;
