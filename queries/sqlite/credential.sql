-- name: NextCredentialID :one
UPDATE credential_id SET last = last + 1 WHERE kind = ? RETURNING last;

-- name: InsertCredential :one
INSERT INTO credential (kind, id, channel, agent, name, scopes, channels, hash, hint, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *;

-- name: CredentialByHash :one
SELECT * FROM credential WHERE hash = sqlc.arg(hash) AND kind = sqlc.arg(kind);

-- name: CredentialByID :one
SELECT * FROM credential WHERE kind = sqlc.arg(kind) AND id = sqlc.arg(id);

-- name: LiveKeyByName :one
SELECT * FROM credential WHERE kind = 'api_key' AND name = sqlc.arg(name) AND revoked_at IS NULL;

-- name: CredentialsOf :many
SELECT * FROM credential
WHERE kind = sqlc.arg(kind) AND channel IS CAST(sqlc.narg(channel) AS INTEGER) AND agent IS CAST(sqlc.narg(agent) AS INTEGER) AND id > sqlc.arg(after)
ORDER BY id LIMIT sqlc.arg(n);

-- name: RevokeCredential :exec
UPDATE credential SET revoked_at = sqlc.arg(at) WHERE kind = sqlc.arg(kind) AND id = sqlc.arg(id);

-- name: ExpireOtherCredentials :exec
UPDATE credential SET expires_at = sqlc.arg(at)
WHERE kind = sqlc.arg(kind) AND channel IS CAST(sqlc.narg(channel) AS INTEGER) AND agent IS CAST(sqlc.narg(agent) AS INTEGER)
  AND id <> sqlc.arg(keep) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > sqlc.arg(at));

-- name: TouchCredential :exec
UPDATE credential SET last_used_at = sqlc.arg(at) WHERE kind = sqlc.arg(kind) AND id = sqlc.arg(id);
