-- name: RetainedChannels :many
SELECT id, name, retention_days, swept FROM channel ORDER BY id;

-- name: SetSwept :exec
UPDATE channel SET swept = sqlc.arg(swept) WHERE id = sqlc.arg(id) AND swept < sqlc.arg(swept);

-- name: SetGone :exec
UPDATE channel SET gone = sqlc.arg(gone) WHERE id = sqlc.arg(id) AND gone < sqlc.arg(gone);

-- name: GoneOfChannel :one
SELECT gone FROM channel WHERE id = ?;

-- name: NewestGone :one
SELECT CAST(coalesce(max(gone), 0) AS INTEGER) AS gone, CAST(coalesce(max(swept), 0) AS INTEGER) AS swept FROM channel;

-- name: OldMessages :many
SELECT id, channel, conversation FROM message
WHERE id > sqlc.arg(after) AND id <= sqlc.arg(newest) ORDER BY id LIMIT sqlc.arg(n);

-- name: PendingAmong :many
SELECT message FROM pending WHERE message IN (sqlc.slice('ids'));

-- name: DeleteMessages :exec
DELETE FROM message WHERE id IN (sqlc.slice('ids'));

-- name: DeleteLives :exec
DELETE FROM life WHERE message IN (sqlc.slice('ids'));

-- name: DeleteAttachmentsOf :many
DELETE FROM attachment WHERE message IN (sqlc.slice('ids')) RETURNING path;

-- name: NamedAttachments :many
SELECT DISTINCT path FROM attachment WHERE path IN (sqlc.slice('paths'));

-- name: DeleteEmptyConversations :exec
DELETE FROM conversation
WHERE conversation.id IN (sqlc.slice('ids')) AND agent = '' AND muted = 0
  AND conversation.head NOT IN (SELECT m.id FROM message m WHERE m.id = conversation.head);

-- name: NextRemoved :one
SELECT channel FROM removed ORDER BY channel LIMIT 1;

-- name: DeleteRemoved :exec
DELETE FROM removed WHERE channel = ?;

-- name: SweepConversations :many
SELECT id, head FROM conversation WHERE channel = ? LIMIT 100;

-- name: SweepChain :many
WITH RECURSIVE chain(id, prev) AS (
    SELECT first.id, first.prev FROM message first WHERE first.id = sqlc.arg(newest)
    UNION ALL
    SELECT older.id, older.prev FROM chain JOIN message older ON older.id = chain.prev
)
SELECT chain.id, chain.prev FROM chain LIMIT sqlc.arg(n);

-- name: SetConversationHead :exec
UPDATE conversation SET head = ? WHERE id = ?;

-- name: DeleteConversation :exec
DELETE FROM conversation WHERE id = ?;
