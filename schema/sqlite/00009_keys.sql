-- +goose Up

-- Keys that operators give to clients beside their own, which is a file. Their
-- ids are never used again: threads are kept by them.
CREATE TABLE api_key (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the key
    hint         TEXT    NOT NULL,        -- its last four characters
    scopes       TEXT    NOT NULL,        -- JSON array: what it opens
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX api_key_name ON api_key (name) WHERE revoked_at IS NULL;

-- Whose a conversation of a front end is, and what its owner calls it. The
-- trigger forgets that with the conversation.
CREATE TABLE thread (
    channel      INTEGER NOT NULL,
    owner        INTEGER NOT NULL, -- api_key.id; 0 = the operator
    name         TEXT    NOT NULL,
    conversation TEXT    NOT NULL, -- conversation.key
    PRIMARY KEY (channel, owner, name)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX thread_conversation ON thread (channel, conversation);
-- +goose StatementBegin
CREATE TRIGGER thread_of_conversation AFTER DELETE ON conversation
BEGIN DELETE FROM thread WHERE channel = OLD.channel AND conversation = OLD.key; END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER thread_of_conversation;
DROP TABLE thread;
DROP TABLE api_key;
