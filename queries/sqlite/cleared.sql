-- name: ClearedUpTo :one
SELECT cleared_upto FROM cleared WHERE channel = ? AND conversation = ?;

-- name: Clear :exec
INSERT INTO cleared (channel, conversation, cleared_upto) VALUES (?, ?, ?)
ON CONFLICT (channel, conversation) DO UPDATE SET cleared_upto = max(cleared.cleared_upto, excluded.cleared_upto);
