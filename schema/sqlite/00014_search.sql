-- +goose Up

-- The words of messages, folded and apart as host/internal/search makes them: the
-- tokenizer only divides at spaces. Nothing of a message is kept here but its
-- words; rowid is message.id. place is the channel ('c' and its key).
CREATE VIRTUAL TABLE search USING fts5(text, author, place, content='', contentless_delete=1, tokenize='ascii');
-- What was deleted is merged away early, from one entry in a hundred on: its words
-- are to leave the file, not only the answers.
INSERT INTO search (search, rank) VALUES ('deletemerge', 1);

-- How far the index is: it has messages from behind low up to high. New ones are
-- added upwards; those that were there before it, then, downwards.
CREATE TABLE indexing (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    low  INTEGER NOT NULL, -- messages up to this one are not in it yet; 0 = all are
    high INTEGER NOT NULL, -- messages behind this one are not in it yet
    -- When all of it was last written anew, so that no deleted word is left in the
    -- file; 0 = it is to be.
    purged_at INTEGER NOT NULL
) STRICT;
INSERT INTO indexing (id, low, high, purged_at)
SELECT 1, coalesce(max(id), 0), coalesce(max(id), 0), CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM message;

-- Messages up to high that were still being made when they were come by.
CREATE TABLE index_later (
    message INTEGER PRIMARY KEY
) STRICT;

-- The newest message of each conversation, up to indexing.high, and that of those
-- that stay without messages: an index of conversation.head would cost each commit.
CREATE TABLE recent (
    head         INTEGER PRIMARY KEY, -- message.id
    conversation INTEGER NOT NULL,
    channel      INTEGER NOT NULL
) STRICT;
CREATE INDEX recent_channel ON recent (channel, head);
INSERT OR IGNORE INTO recent (head, conversation, channel)
SELECT c.head, c.id, c.channel FROM conversation c WHERE c.head > 0;

-- Whoever deletes a message deletes its words.
-- +goose StatementBegin
CREATE TRIGGER search_of_message AFTER DELETE ON message
BEGIN
    DELETE FROM search WHERE rowid = OLD.id;
    DELETE FROM index_later WHERE message = OLD.id;
    DELETE FROM recent WHERE head = OLD.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER recent_of_conversation AFTER DELETE ON conversation
BEGIN DELETE FROM recent WHERE head = OLD.head; END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER recent_of_conversation;
DROP TRIGGER search_of_message;
DROP TABLE recent;
DROP TABLE index_later;
DROP TABLE indexing;
DROP TABLE search;
