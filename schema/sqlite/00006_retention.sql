-- +goose Up

-- How long messages of the channel are kept; 0 = for ever.
ALTER TABLE channel ADD COLUMN retention_days INTEGER NOT NULL DEFAULT 0;
-- No message of the channel up to this one is there any more: where what deletes
-- old messages goes on. Messages are deleted oldest first, with no gap.
ALTER TABLE channel ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;
-- The newest message of the channel that was deleted; 0 = none.
ALTER TABLE channel ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;

-- Which messages name an attachment, which goes with the last of them. A message
-- without attachments costs nothing here.
CREATE TABLE attachment (
    path    TEXT    NOT NULL, -- BUCKET/PATH
    message INTEGER NOT NULL,
    PRIMARY KEY (path, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachment_message ON attachment (message);

INSERT OR IGNORE INTO attachment (path, message)
SELECT substr(t.value, length('/storage/v1/object/sign/') + 1), m.id
FROM message m, json_tree(CASE WHEN json_valid(CAST(m.parts AS TEXT)) THEN CAST(m.parts AS TEXT) ELSE '[]' END) t
WHERE m.parts IS NOT NULL AND t.type = 'text' AND t.value LIKE '/storage/v1/object/sign/agent-files/%';

INSERT OR IGNORE INTO attachment (path, message)
SELECT t.value, m.id
FROM message m, json_tree(CASE WHEN json_valid(CAST(m.meta AS TEXT)) THEN CAST(m.meta AS TEXT) ELSE '{}' END) t
WHERE m.meta IS NOT NULL AND t.type = 'text' AND t.value LIKE 'agent-files/%';

-- +goose Down
DROP TABLE attachment;
ALTER TABLE channel DROP COLUMN gone;
ALTER TABLE channel DROP COLUMN swept;
ALTER TABLE channel DROP COLUMN retention_days;
