-- +goose Up

-- What ${NAME} in plugins.yaml stands for, where the environment has nothing of
-- that name. sealed opens only with the master key, which is not in the database.
-- Since this migration the secrets in agent.config are sealed too: {"$sealed":"…"}.
CREATE TABLE secret (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE,
    sealed     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- Has a row while the file may still hold, in pages that are free, what was stored
-- in clear before it was sealed: the next start writes the file anew.
CREATE TABLE unswept (
    id INTEGER PRIMARY KEY CHECK (id = 1)
) STRICT;
INSERT INTO unswept SELECT 1 FROM sqlite_sequence WHERE name = 'agent' AND seq > 1;

-- +goose Down
DROP TABLE unswept;
DROP TABLE secret;
