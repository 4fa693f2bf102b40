-- name: ChannelEnds :one
SELECT CAST(coalesce(max(head), 0) AS INTEGER) AS head,
       CAST(coalesce(max(last_in), 0) AS INTEGER) AS last_in,
       CAST(coalesce(max(last_out), 0) AS INTEGER) AS last_out
FROM conversation WHERE channel = ?;

-- name: MessageByPlatformID :one
SELECT * FROM entry m WHERE m.channel = ? AND m.platform_id = ?;

-- name: BreakStreams :execrows
UPDATE message SET status = sqlc.arg(broken) WHERE id > sqlc.arg(after) AND status = sqlc.arg(streaming);

-- name: MessagesAfter :many
SELECT m.id, m.channel, CAST(octet_length(m.text) + coalesce(octet_length(m.parts), 0) + coalesce(octet_length(m.origin), 0) + coalesce(octet_length(m.meta), 0) + coalesce(octet_length(m.notes), 0) AS INTEGER) AS size FROM message m
WHERE m.id > sqlc.arg(after) ORDER BY m.id LIMIT sqlc.arg(n);

-- name: ChangedSince :many
SELECT e.id, e.channel, e.size FROM (SELECT m.id, m.settled_at, m.channel, CAST(octet_length(m.text) + coalesce(octet_length(m.parts), 0) + coalesce(octet_length(m.origin), 0) + coalesce(octet_length(m.meta), 0) + coalesce(octet_length(m.notes), 0) AS INTEGER) AS size FROM message m WHERE m.id <= sqlc.arg(last) ORDER BY m.id DESC LIMIT sqlc.arg(n)) e
WHERE e.settled_at >= CAST(sqlc.arg(at) AS INTEGER) OR e.id IN (SELECT a.reply_to FROM message a WHERE a.id > sqlc.arg(last) ORDER BY a.id LIMIT sqlc.arg(n))
ORDER BY e.id;

-- name: NewestMessage :one
SELECT CAST(coalesce(max(id), 0) AS INTEGER) AS id FROM message;

-- name: PendingOfChannel :many
SELECT m.id, m.channel, CAST(octet_length(m.text) + coalesce(octet_length(m.parts), 0) + coalesce(octet_length(m.origin), 0) + coalesce(octet_length(m.meta), 0) + coalesce(octet_length(m.notes), 0) AS INTEGER) AS size FROM pending p JOIN message m ON m.id = p.message
WHERE p.channel = sqlc.arg(channel) AND p.message > sqlc.arg(after) AND m.state = sqlc.arg(queued)
ORDER BY p.message LIMIT sqlc.arg(n);

-- name: WaitingOfChannel :many
SELECT p.message, p.frame, p.tries, CAST(coalesce(c.key, '') AS TEXT) AS conversation_key
FROM pending p JOIN message m ON m.id = p.message LEFT JOIN conversation c ON c.id = m.conversation
WHERE p.channel = sqlc.arg(channel) AND p.message > sqlc.arg(after) AND m.state = sqlc.arg(queued)
ORDER BY p.message LIMIT sqlc.arg(n);

-- name: ListInFlight :exec
INSERT OR IGNORE INTO pending (message, channel, kind)
SELECT m.id, m.channel, 1 FROM message m WHERE m.id > sqlc.arg(after) AND m.state = sqlc.arg(in_flight);

-- name: CountListed :many
SELECT channel, count(*) AS n FROM pending GROUP BY channel;

-- name: ListedOtherwise :many
SELECT message, channel, kind FROM pending WHERE kind <> 0 ORDER BY message;

-- name: Requeue :exec
UPDATE message SET state = sqlc.arg(queued) WHERE state IN (sqlc.arg(sent), sqlc.arg(in_flight)) AND id IN (sqlc.slice('ids'));

-- name: ListQueued :exec
UPDATE pending SET kind = 0 WHERE message IN (sqlc.slice('ids'));

-- name: LastSent :one
WITH RECURSIVE newest (id, n) AS (
    SELECT CAST(sqlc.arg(head) AS INTEGER), 1
    UNION ALL
    SELECT m.prev_channel, newest.n + 1 FROM newest JOIN message m ON m.id = newest.id WHERE newest.n < CAST(sqlc.arg(most) AS INTEGER)
)
SELECT CAST(coalesce(max(CASE WHEN m.state = sqlc.arg(delivered) THEN m.settled_at END), 0) AS INTEGER) AS delivered,
  CAST(coalesce(max(m.settled_at), 0) AS INTEGER) AS settled, CAST(coalesce(max(m.id), 0) AS INTEGER) AS newest
FROM newest JOIN message m ON m.id = newest.id WHERE m.direction = 1 AND m.state IN (sqlc.arg(sent), sqlc.arg(delivered), sqlc.arg(flies));

-- name: ReopenMessage :execrows
UPDATE message SET state = sqlc.arg(received), reason = NULL, settled_at = CAST(sqlc.arg(at) AS INTEGER)
WHERE id = sqlc.arg(id) AND direction = 0 AND state IN (5, 6);

-- name: InsertLife :exec
INSERT INTO life (message, at, what, detail) VALUES (?, ?, ?, ?);

-- name: Replayed :many
SELECT message, CAST(max(at) AS INTEGER) AS at FROM life
WHERE what = sqlc.arg(replayed) AND message IN (sqlc.slice('ids')) GROUP BY message; -- in this order: sqlc numbers what is not in the slice

-- name: InsertReopened :exec
INSERT OR REPLACE INTO pending (message, channel, kind) SELECT m.id, m.channel, 2 FROM message m WHERE m.id = ?;

-- name: Reopened :many
SELECT m.id, m.channel, CAST(octet_length(m.text) + coalesce(octet_length(m.parts), 0) + coalesce(octet_length(m.origin), 0) + coalesce(octet_length(m.meta), 0) + coalesce(octet_length(m.notes), 0) AS INTEGER) AS size,
       CAST(p.tries > 0 AS INTEGER) AS told
FROM pending p JOIN message m ON m.id = p.message
WHERE m.direction = 0 AND m.state = sqlc.arg(received) AND p.message IN (sqlc.slice('ids')) ORDER BY p.message;

-- name: PendingChannels :many
SELECT DISTINCT channel FROM pending;

-- name: CountPending :one
SELECT count(*) FROM pending WHERE channel = sqlc.arg(channel) AND kind <> 2;

-- name: Mark :one
SELECT message FROM mark WHERE id = 1;

-- name: SetMark :exec
UPDATE mark SET message = ? WHERE id = 1;

-- name: Unanswered :many
SELECT m.id, m.channel, CAST(octet_length(m.text) + coalesce(octet_length(m.parts), 0) + coalesce(octet_length(m.origin), 0) + coalesce(octet_length(m.meta), 0) + coalesce(octet_length(m.notes), 0) AS INTEGER) AS size FROM message m
WHERE m.id > sqlc.arg(after) AND m.direction = 0 AND m.state = sqlc.arg(received)
  AND m.id NOT IN (SELECT a.reply_to FROM message a WHERE a.id > sqlc.arg(after) AND a.status = 0)
  AND m.id NOT IN (SELECT p.message FROM pending p)
ORDER BY m.id LIMIT sqlc.arg(n);

-- name: OldestQueued :many
SELECT p.message FROM pending p JOIN message m ON m.id = p.message
WHERE p.channel = sqlc.arg(channel) AND m.state = sqlc.arg(queued) ORDER BY p.message LIMIT 1;
