-- +goose Up

-- The life of a message's content, which has nothing to do with its delivery.
-- The insert of the hot path leaves it out.
ALTER TABLE message ADD COLUMN status INTEGER NOT NULL DEFAULT 0; -- 0 completed, 1 pending, 2 streaming, 3 error

DROP VIEW entry;
CREATE VIEW entry AS
SELECT m.id, m.channel, m.conversation, CAST(coalesce(c.key, '') AS TEXT) AS conversation_key,
       m.prev, m.prev_channel, m.direction, m.state, m.status, m.turn, m.reply_to, m.text, m.parts, m.origin,
       m.meta, m.notes, m.reason, m.platform_id
FROM message m LEFT JOIN conversation c ON c.id = m.conversation;

-- +goose Down
DROP VIEW entry;
ALTER TABLE message DROP COLUMN status;
CREATE VIEW entry AS
SELECT m.id, m.channel, m.conversation, CAST(coalesce(c.key, '') AS TEXT) AS conversation_key,
       m.prev, m.prev_channel, m.direction, m.state, m.turn, m.reply_to, m.text, m.parts, m.origin,
       m.meta, m.notes, m.reason, m.platform_id
FROM message m LEFT JOIN conversation c ON c.id = m.conversation;
