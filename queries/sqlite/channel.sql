-- name: InsertChannel :one
INSERT INTO channel (uid, name, kind, enabled, agent, agents, queue, accept_capabilities, allow_users, profile, queue_limits, retention_days, rate_limit, swept, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *;

-- name: UpdateChannel :one
UPDATE channel SET name = ?, enabled = ?, agent = ?, agents = ?, queue = ?, accept_capabilities = ?, allow_users = ?, profile = ?, queue_limits = ?, retention_days = ?, rate_limit = ?,
  version = version + 1
WHERE id = ? AND version = ? RETURNING *;

-- name: DeleteChannel :execrows
DELETE FROM channel WHERE id = ? AND version = ?;

-- name: ChannelByID :one
SELECT * FROM channel WHERE id = ?;

-- name: ChannelByRef :one
SELECT * FROM channel WHERE uid = sqlc.arg(ref) OR name = sqlc.arg(ref);

-- name: Channels :many
SELECT * FROM channel WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);

-- name: InsertRemoved :exec
INSERT INTO removed (channel, at) VALUES (?, ?);

-- name: Cursor :one
SELECT value FROM cursor WHERE channel = ?;

-- name: DeleteCursor :exec
DELETE FROM cursor WHERE channel = ?;

-- name: DeletePendingOfChannel :exec
DELETE FROM pending WHERE channel = ?;

-- name: ChannelByKind :one
SELECT * FROM channel WHERE kind = ? ORDER BY id LIMIT 1;
