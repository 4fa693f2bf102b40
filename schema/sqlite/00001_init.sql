-- +goose Up

-- A channel is one slot: a name, its policy, and everything said through it.
-- Its id is never used again (AUTOINCREMENT): messages of a deleted channel
-- are swept later and must not turn up in a new one.
CREATE TABLE channel (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    uid                 TEXT    NOT NULL UNIQUE, -- the id that operators see
    name                TEXT    NOT NULL UNIQUE,
    kind                TEXT    NOT NULL,
    enabled             INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    agent               TEXT    NOT NULL,
    agents              TEXT    NOT NULL, -- JSON array of names; [] = all
    queue               INTEGER NOT NULL CHECK (queue IN (0, 1)),
    accept_capabilities TEXT    NOT NULL, -- JSON array; [] = all
    allow_users         TEXT    NOT NULL, -- JSON array of user ids; [] = all
    profile             TEXT    NOT NULL, -- JSON object
    created_at          INTEGER NOT NULL  -- all times: milliseconds since 1970, UTC
) STRICT;

CREATE TABLE token (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    channel      INTEGER NOT NULL REFERENCES channel (id) ON DELETE CASCADE,
    hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the token
    hint         TEXT    NOT NULL,        -- its last four characters
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE INDEX token_channel ON token (channel);

-- Written at most once a batch: the ends of the chains that message.prev forms.
CREATE TABLE conversation (
    id       INTEGER PRIMARY KEY,
    channel  INTEGER NOT NULL,
    key      TEXT    NOT NULL,            -- the effective conversation_id
    agent    TEXT    NOT NULL DEFAULT '', -- chosen here; '' = the channel's
    muted    INTEGER NOT NULL DEFAULT 0 CHECK (muted IN (0, 1)),
    turns    INTEGER NOT NULL DEFAULT 0,
    head     INTEGER NOT NULL DEFAULT 0,  -- newest message
    last_in  INTEGER NOT NULL DEFAULT 0,
    last_out INTEGER NOT NULL DEFAULT 0,
    offer    INTEGER NOT NULL DEFAULT 0,  -- newest message with buttons
    UNIQUE (channel, key)
) STRICT;

-- The ids are the host's own, ascending in commit order: 41 bits milliseconds,
-- 10 bits node, 12 bits counter. No foreign keys and one partial index: each
-- costs more than the row. History follows prev and prev_channel backwards.
CREATE TABLE message (
    id           INTEGER PRIMARY KEY,
    channel      INTEGER NOT NULL,
    conversation INTEGER NOT NULL,
    prev         INTEGER NOT NULL, -- the one before in the conversation; 0 = none
    prev_channel INTEGER NOT NULL, -- the one before in the channel; 0 = none
    direction    INTEGER NOT NULL, -- 0 in, 1 out
    state        INTEGER NOT NULL, -- store.State
    turn         INTEGER NOT NULL,
    reply_to     INTEGER NOT NULL, -- the message that this one answers; 0 = none
    text         TEXT    NOT NULL,
    parts        BLOB,             -- JSON array; NULL = one text part
    origin       BLOB,             -- JSON: author and routing
    meta         BLOB,             -- JSON object
    notes        BLOB,             -- JSON array: what was degraded
    reason       TEXT,             -- why it failed
    platform_id  TEXT              -- the platform's own id
) STRICT;
CREATE UNIQUE INDEX message_platform ON message (channel, platform_id) WHERE platform_id IS NOT NULL;

-- A message as readers want it.
CREATE VIEW entry AS
SELECT m.id, m.channel, m.conversation, CAST(coalesce(c.key, '') AS TEXT) AS conversation_key,
       m.prev, m.prev_channel, m.direction, m.state, m.turn, m.reply_to, m.text, m.parts, m.origin,
       m.meta, m.notes, m.reason, m.platform_id
FROM message m LEFT JOIN conversation c ON c.id = m.conversation;

-- Unfinished work only: the happy path never comes here.
CREATE TABLE pending (
    message INTEGER PRIMARY KEY,
    channel INTEGER NOT NULL
) STRICT;
CREATE INDEX pending_channel ON pending (channel, message);

-- Every message up to this one is finished or pending: where recovery begins.
CREATE TABLE mark (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    message INTEGER NOT NULL
) STRICT;
INSERT INTO mark (id, message) VALUES (1, 0);

-- Deleted channels whose messages are still to be swept.
CREATE TABLE removed (
    channel INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    action TEXT    NOT NULL,
    target TEXT    NOT NULL,
    detail TEXT    NOT NULL -- JSON object, never a secret
) STRICT;
-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
-- +goose StatementEnd

-- +goose Down
DROP TABLE audit;
DROP TABLE removed;
DROP TABLE mark;
DROP TABLE pending;
DROP VIEW entry;
DROP TABLE message;
DROP TABLE conversation;
DROP TABLE token;
DROP TABLE channel;
