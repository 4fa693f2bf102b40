-- name: InsertAgent :one
INSERT INTO agent (uid, name, kind, config, enabled, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING *;

-- name: UpdateAgent :one
UPDATE agent SET name = ?, config = ?, enabled = ?, version = version + 1 WHERE id = ? AND version = ? RETURNING *;

-- name: DeleteAgent :execrows
DELETE FROM agent WHERE id = ? AND version = ?;

-- name: AgentByID :one
SELECT * FROM agent WHERE id = ?;

-- name: AgentByRef :one
SELECT * FROM agent WHERE uid = sqlc.arg(ref) OR name = sqlc.arg(ref);

-- name: Agents :many
SELECT * FROM agent WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);

-- name: ChannelsOfAgent :many
SELECT c.name FROM channel c
WHERE c.agent = sqlc.arg(name) OR EXISTS (SELECT 1 FROM json_each(c.agents) a WHERE a.value = sqlc.arg(name))
ORDER BY c.id;

-- name: InsertAgentKey :one
INSERT INTO agent_key (agent, hash, hint, created_at, expires_at) VALUES (?, ?, ?, ?, ?) RETURNING *;

-- name: AgentKeyByHash :one
SELECT * FROM agent_key WHERE hash = ?;

-- name: KeysOfAgent :many
SELECT * FROM agent_key WHERE agent = sqlc.arg(agent) AND id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);

-- name: RevokeAgentKey :execrows
UPDATE agent_key SET revoked_at = coalesce(revoked_at, CAST(sqlc.arg(at) AS INTEGER)) WHERE id = sqlc.arg(id) AND agent = sqlc.arg(agent);

-- name: ExpireOtherAgentKeys :exec
UPDATE agent_key SET expires_at = sqlc.arg(at)
WHERE agent = sqlc.arg(agent) AND id <> sqlc.arg(keep) AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > sqlc.arg(at));

-- name: TouchAgentKey :exec
UPDATE agent_key SET last_used_at = ? WHERE id = ?;
