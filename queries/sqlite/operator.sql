-- name: Operator :one
SELECT * FROM operator WHERE id = 1;

-- name: SetOperator :exec
INSERT INTO operator (id, name, password, created_at, changed_at) VALUES (1, sqlc.arg(name), sqlc.arg(password), sqlc.arg(at), sqlc.arg(at))
ON CONFLICT (id) DO UPDATE SET name = excluded.name, password = excluded.password, changed_at = excluded.changed_at;

-- name: RenameOperator :execrows
UPDATE operator SET name = ? WHERE id = 1;

-- name: SetPassword :execrows
UPDATE operator SET password = sqlc.arg(password), changed_at = sqlc.arg(at) WHERE id = 1 AND password = sqlc.arg(was);

-- name: InsertSession :one
INSERT INTO session (hash, created_at, expires_at, last_used_at, remote, user_agent) VALUES (?, ?, ?, ?, ?, ?) RETURNING *;

-- name: SessionByHash :one
SELECT * FROM session WHERE hash = ?;

-- name: Sessions :many
SELECT * FROM session ORDER BY id DESC LIMIT ?;

-- name: DeleteSession :execrows
DELETE FROM session WHERE id = ?;

-- name: DeleteOtherSessions :many
DELETE FROM session WHERE id <> sqlc.arg(keep) RETURNING id;

-- name: DeleteOldSessions :exec
DELETE FROM session WHERE expires_at <= sqlc.arg(now) OR last_used_at <= sqlc.arg(idle_since);

-- name: DeleteSessionsBelow :many
DELETE FROM session WHERE id < sqlc.arg(id) RETURNING id;

-- name: TouchSession :exec
UPDATE session SET last_used_at = sqlc.arg(at) WHERE id = sqlc.arg(id);

-- name: SessionByID :one
SELECT * FROM session WHERE id = ?;
