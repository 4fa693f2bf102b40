-- name: InsertToken :one
INSERT INTO token (channel, hash, hint, created_at, expires_at) VALUES (?, ?, ?, ?, ?) RETURNING *;

-- name: TokenByHash :one
SELECT * FROM token WHERE hash = ?;

-- name: TokensOfChannel :many
SELECT * FROM token WHERE channel = sqlc.arg(channel) AND id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);

-- name: TokenOfChannel :one
SELECT * FROM token WHERE id = sqlc.arg(id) AND channel = sqlc.arg(channel);

-- name: RevokeToken :exec
UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL;

-- name: ExpireOtherTokens :exec
UPDATE token SET expires_at = sqlc.arg(at)
WHERE channel = sqlc.arg(channel) AND id <> sqlc.arg(keep) AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > sqlc.arg(at));

-- name: TouchToken :exec
UPDATE token SET last_used_at = ? WHERE id = ?;
