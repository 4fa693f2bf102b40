-- +goose Up

-- What somebody shows to be let in: the token of a channel's adapter, the key of
-- an agent, or a key of the API.
CREATE TABLE credential (
    kind         TEXT    NOT NULL CHECK (kind IN ('channel_token', 'agent_key', 'api_key')),
    id           INTEGER NOT NULL, -- as operators see it: of its kind, and never used again
    channel      INTEGER REFERENCES channel (id) ON DELETE CASCADE, -- whose token it is
    agent        INTEGER REFERENCES agent (id) ON DELETE CASCADE,   -- whose key it is
    name         TEXT    NOT NULL, -- of an API key; else ''
    scopes       TEXT    NOT NULL, -- JSON array: what an API key opens
    channels     TEXT    NOT NULL, -- JSON array: channel.uid of those that an API key is limited to, also of deleted ones; [] = all
    hash         BLOB    NOT NULL, -- SHA-256 of the secret
    hint         TEXT    NOT NULL, -- its last four characters
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER,
    PRIMARY KEY (kind, id),
    CHECK ((kind = 'channel_token') = (channel IS NOT NULL)),
    CHECK ((kind = 'agent_key') = (agent IS NOT NULL)),
    CHECK ((kind = 'api_key') = (name <> ''))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX credential_hash ON credential (hash, kind);
CREATE INDEX credential_channel ON credential (channel);
CREATE INDEX credential_agent ON credential (agent);
CREATE UNIQUE INDEX credential_name ON credential (name) WHERE kind = 'api_key' AND revoked_at IS NULL;

-- The newest id that was given, also of a credential that was deleted since.
CREATE TABLE credential_id (
    kind TEXT    PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO credential_id (kind, last) VALUES
    ('channel_token', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'token'), 0)),
    ('agent_key', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'agent_key'), 0)),
    ('api_key', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'api_key'), 0));

INSERT INTO credential (kind, id, channel, name, scopes, channels, hash, hint, created_at, expires_at, revoked_at, last_used_at)
SELECT 'channel_token', id, channel, '', '[]', '[]', hash, hint, created_at, expires_at, revoked_at, last_used_at FROM token;
INSERT INTO credential (kind, id, agent, name, scopes, channels, hash, hint, created_at, expires_at, revoked_at, last_used_at)
SELECT 'agent_key', id, agent, '', '[]', '[]', hash, hint, created_at, expires_at, revoked_at, last_used_at FROM agent_key;
INSERT INTO credential (kind, id, name, scopes, channels, hash, hint, created_at, expires_at, revoked_at, last_used_at)
SELECT 'api_key', id, name, scopes, channels, hash, hint, created_at, expires_at, revoked_at, last_used_at FROM api_key;
DROP TABLE token;
DROP TABLE agent_key;
DROP TABLE api_key;

-- A secret opens one thing. Where an operator once brought the same one for a
-- channel and an agent, both rows were copied above, and go on.
-- +goose StatementBegin
CREATE TRIGGER credential_hash_once BEFORE INSERT ON credential WHEN EXISTS (SELECT 1 FROM credential WHERE hash = NEW.hash)
BEGIN SELECT raise(ABORT, 'UNIQUE constraint failed: credential.hash'); END;
-- +goose StatementEnd

-- +goose Down
CREATE TABLE token (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    channel      INTEGER NOT NULL REFERENCES channel (id) ON DELETE CASCADE,
    hash         BLOB    NOT NULL UNIQUE,
    hint         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE INDEX token_channel ON token (channel);
CREATE TABLE agent_key (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    agent        INTEGER NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
    hash         BLOB    NOT NULL UNIQUE,
    hint         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE INDEX agent_key_agent ON agent_key (agent);
CREATE TABLE api_key (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE,
    hint         TEXT    NOT NULL,
    scopes       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER,
    channels     TEXT    NOT NULL DEFAULT '[]'
) STRICT;
CREATE UNIQUE INDEX api_key_name ON api_key (name) WHERE revoked_at IS NULL;
INSERT INTO token (id, channel, hash, hint, created_at, expires_at, revoked_at, last_used_at)
SELECT id, channel, hash, hint, created_at, expires_at, revoked_at, last_used_at FROM credential WHERE kind = 'channel_token';
INSERT INTO agent_key (id, agent, hash, hint, created_at, expires_at, revoked_at, last_used_at)
SELECT id, agent, hash, hint, created_at, expires_at, revoked_at, last_used_at FROM credential WHERE kind = 'agent_key';
INSERT INTO api_key (id, name, hash, hint, scopes, created_at, expires_at, revoked_at, last_used_at, channels)
SELECT id, name, hash, hint, scopes, created_at, expires_at, revoked_at, last_used_at, channels FROM credential WHERE kind = 'api_key';
DELETE FROM sqlite_sequence WHERE name IN ('token', 'agent_key', 'api_key');
INSERT INTO sqlite_sequence (name, seq)
SELECT CASE kind WHEN 'channel_token' THEN 'token' ELSE kind END, last FROM credential_id;
DROP TABLE credential_id;
DROP TABLE credential;
