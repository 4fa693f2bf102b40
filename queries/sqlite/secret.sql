-- name: PutSecret :one
INSERT INTO secret (name, sealed, created_at, updated_at) VALUES (sqlc.arg(name), sqlc.arg(sealed), sqlc.arg(at), sqlc.arg(at))
ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at
RETURNING *;

-- name: SecretByName :one
SELECT * FROM secret WHERE name = ?;

-- name: Secrets :many
SELECT * FROM secret WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);

-- name: CountSecrets :one
SELECT count(*) FROM secret;

-- name: DeleteSecret :execrows
DELETE FROM secret WHERE name = ?;

-- name: SetSealed :exec
UPDATE secret SET sealed = ? WHERE id = ?;

-- name: SetAgentConfig :exec
UPDATE agent SET config = ? WHERE id = ?;

-- name: Unswept :one
SELECT count(*) FROM unswept;

-- name: SetUnswept :exec
INSERT INTO unswept (id) VALUES (1) ON CONFLICT DO NOTHING;

-- name: DeleteUnswept :exec
DELETE FROM unswept;

-- name: AgentConfigs :many
SELECT id, uid, name, kind, config FROM agent WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);
