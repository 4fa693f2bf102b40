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
