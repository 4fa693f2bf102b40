-- +goose Up

-- Who operates the host: one, or nobody yet.
CREATE TABLE operator (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    name       TEXT    NOT NULL,
    password   TEXT    NOT NULL, -- $argon2id$…: parameters, salt and hash
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL  -- when the password was last set
) STRICT;

-- Where the operator is logged in. A session that ended is deleted; its id is
-- never used again, as the audit log names it.
CREATE TABLE session (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of what the cookie holds
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,        -- whatever happens
    last_used_at INTEGER NOT NULL,
    remote       TEXT    NOT NULL,        -- address of who logged in
    user_agent   TEXT    NOT NULL
) STRICT;

-- What a key is limited to: channel.uid. A deleted channel stays in the list, so
-- that a key never opens more than it did.
ALTER TABLE api_key ADD COLUMN channels TEXT NOT NULL DEFAULT '[]'; -- JSON array; [] = all

-- Who did it how, and from where; of a change the fields that changed. All
-- without secrets.
ALTER TABLE audit ADD COLUMN via    TEXT NOT NULL DEFAULT ''; -- key:ID, session:ID, admin.key; '' = no credential
ALTER TABLE audit ADD COLUMN remote TEXT NOT NULL DEFAULT ''; -- address; '' = the host itself
ALTER TABLE audit ADD COLUMN was    TEXT;                     -- JSON object; NULL = it says nothing
ALTER TABLE audit ADD COLUMN became TEXT;                     -- JSON object

-- A row that takes another's place fires no DELETE trigger.
-- +goose StatementBegin
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER audit_no_replace;
ALTER TABLE audit DROP COLUMN became;
ALTER TABLE audit DROP COLUMN was;
ALTER TABLE audit DROP COLUMN remote;
ALTER TABLE audit DROP COLUMN via;
ALTER TABLE api_key DROP COLUMN channels;
DROP TABLE session;
DROP TABLE operator;
