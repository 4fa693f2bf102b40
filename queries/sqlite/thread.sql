-- name: ThreadOf :one
SELECT conversation FROM thread WHERE channel = ? AND owner = ? AND name = ?;

-- name: InsertThread :exec
INSERT INTO thread (channel, owner, name, conversation) VALUES (?, ?, ?, ?);
