-- +goose Up

-- Who came to a channel or an agent, why it went, and who was not let in. kind is that
-- of the credentials with which one comes; owner is the key of the channel or the agent, 0 =
-- nobody knows whose. Like ones
-- are one line: count of them, of which at is the first and latest the last, in ms.
CREATE TABLE connection (
  id         INTEGER PRIMARY KEY,
  kind       TEXT NOT NULL,
  owner      INTEGER NOT NULL,
  what       INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  latest     INTEGER NOT NULL,
  count      INTEGER NOT NULL,
  remote     TEXT NOT NULL,
  credential INTEGER NOT NULL,
  code       INTEGER NOT NULL,
  why        TEXT NOT NULL
) STRICT;
CREATE INDEX connection_owner ON connection (kind, owner, id);
CREATE INDEX connection_latest ON connection (latest);

-- +goose Down
DROP TABLE connection;
