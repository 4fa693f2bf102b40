-- name: HiddenUpTo :one
SELECT upto FROM hidden WHERE channel = ? AND conversation = ?;

-- name: Hide :exec
INSERT INTO hidden (channel, conversation, upto) VALUES (?, ?, ?)
ON CONFLICT (channel, conversation) DO UPDATE SET upto = max(hidden.upto, excluded.upto);
