-- +goose Up

-- Whom a channel may be routed to. What config means is its kind's business.
CREATE TABLE agent (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    uid        TEXT    NOT NULL UNIQUE, -- the id that operators see
    name       TEXT    NOT NULL UNIQUE,
    kind       TEXT    NOT NULL,
    config     TEXT    NOT NULL, -- JSON object, also its secrets
    enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    created_at INTEGER NOT NULL
) STRICT;

-- What an agent that comes to the host shows, as a channel's tokens.
CREATE TABLE agent_key (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    agent        INTEGER NOT NULL REFERENCES agent (id) ON DELETE CASCADE,
    hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the key
    hint         TEXT    NOT NULL,        -- its last four characters
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE INDEX agent_key_agent ON agent_key (agent);

-- The agent that is built in.
INSERT INTO agent (uid, name, kind, config, enabled, created_at)
VALUES ('echo', 'echo', 'echo', '{}', 1, CAST(unixepoch('subsec') * 1000 AS INTEGER));

-- +goose Down
DROP TABLE agent_key;
DROP TABLE agent;
