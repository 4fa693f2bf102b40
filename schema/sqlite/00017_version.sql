-- +goose Up

-- Counts the changes of a row. Who changes one says which version it read, and fails
-- if that is not the newest any more.
ALTER TABLE channel ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE agent   ADD COLUMN version INTEGER NOT NULL DEFAULT 1;

-- Of a change of a channel or an agent: uid and version of the row that it made.
ALTER TABLE audit ADD COLUMN subject TEXT    NOT NULL DEFAULT ''; -- '' = of nothing that has versions
ALTER TABLE audit ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
CREATE INDEX audit_version ON audit (subject, version) WHERE version > 0;

-- +goose Down
DROP INDEX audit_version;
ALTER TABLE audit DROP COLUMN version;
ALTER TABLE audit DROP COLUMN subject;
ALTER TABLE agent DROP COLUMN version;
ALTER TABLE channel DROP COLUMN version;
