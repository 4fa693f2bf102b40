-- name: MinuteOf :one
SELECT * FROM minute WHERE channel = ? AND at = ?;

-- name: PutMinute :exec
INSERT OR REPLACE INTO minute (channel, at, received, sent, failed, refused, queue, latency)
SELECT sqlc.arg(channel), sqlc.arg(at), sqlc.arg(received), sqlc.arg(sent), sqlc.arg(failed), sqlc.arg(refused), sqlc.arg(queue), sqlc.arg(latency)
WHERE sqlc.arg(channel) = 0 OR EXISTS (SELECT 1 FROM channel c WHERE c.id = sqlc.arg(channel));

-- name: Minutes :many
SELECT * FROM minute WHERE channel = sqlc.arg(channel) AND at >= sqlc.arg(first) AND at < sqlc.arg(past) ORDER BY at;

-- name: DeleteMinutes :execrows
DELETE FROM minute WHERE (channel, at) IN (SELECT m.channel, m.at FROM minute m WHERE m.at < sqlc.arg(before) ORDER BY m.at LIMIT sqlc.arg(n));
