-- name: InsertKey :one
INSERT INTO api_key (name, hash, hint, scopes, channels, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *;

-- name: KeyByHash :one
SELECT * FROM api_key WHERE hash = ?;

-- name: KeyByID :one
SELECT * FROM api_key WHERE id = ?;

-- name: LiveKeyByName :one
SELECT * FROM api_key WHERE name = ? AND revoked_at IS NULL;

-- name: Keys :many
SELECT * FROM api_key WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);

-- name: RevokeKey :exec
UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL;

-- name: TouchKey :exec
UPDATE api_key SET last_used_at = ? WHERE id = ?;

-- name: ChannelByKind :one
SELECT * FROM channel WHERE kind = ? ORDER BY id LIMIT 1;

-- name: ThreadOf :one
SELECT conversation FROM thread WHERE channel = ? AND owner = ? AND name = ?;

-- name: InsertThread :exec
INSERT INTO thread (channel, owner, name, conversation) VALUES (?, ?, ?, ?);

