-- name: Indexing :one
SELECT low, high FROM indexing WHERE id = 1;

-- name: SetIndexing :exec
UPDATE indexing SET low = ?, high = ? WHERE id = 1;

-- name: ToIndexUp :many
SELECT id, channel, conversation, prev, direction, status, text, parts, origin FROM message
WHERE id > sqlc.arg(after) ORDER BY id LIMIT sqlc.arg(n);

-- name: ToIndexDown :many
SELECT id, channel, conversation, prev, direction, status, text, parts, origin FROM message
WHERE id <= sqlc.arg(upto) ORDER BY id DESC LIMIT sqlc.arg(n);

-- CROSS JOIN: SQLite would go through all messages, as they are asked for in their order.
-- name: ToIndexLater :many
SELECT m.id, m.channel, m.conversation, m.prev, m.direction, m.status, m.text, m.parts, m.origin
FROM index_later l CROSS JOIN message m ON m.id = l.message
WHERE m.status NOT IN (1, 2) ORDER BY l.message LIMIT sqlc.arg(n);

-- name: InsertLater :exec
INSERT OR IGNORE INTO index_later (message)
SELECT m.id FROM message m WHERE m.id IN (sqlc.slice('ids'));

-- name: DeleteLater :exec
DELETE FROM index_later WHERE message IN (sqlc.slice('ids'));

-- name: Later :many
SELECT message FROM index_later WHERE message < sqlc.arg(before) ORDER BY message DESC LIMIT sqlc.arg(n);

-- name: StillThere :many
SELECT id FROM message WHERE id IN (sqlc.slice('ids'));

-- name: DeleteRecent :exec
DELETE FROM recent WHERE head IN (sqlc.slice('heads'));

-- name: InsertRecent :exec
INSERT OR IGNORE INTO recent (head, conversation, channel)
SELECT m.id, m.conversation, m.channel FROM message m WHERE m.id IN (sqlc.slice('heads'));

-- name: CountAfter :one
SELECT count(*) FROM (SELECT 1 FROM message WHERE id > sqlc.arg(after) LIMIT sqlc.arg(most));

-- name: CountUpTo :one
SELECT count(*) FROM (SELECT 1 FROM message WHERE id <= sqlc.arg(upto) LIMIT sqlc.arg(most));

-- name: RecentTail :many
SELECT c.* FROM message m JOIN conversation c ON c.id = m.conversation AND c.head = m.id
WHERE m.id > sqlc.arg(high) AND m.id < sqlc.arg(before)
ORDER BY m.id DESC LIMIT sqlc.arg(n);

-- name: Recent :many
SELECT c.* FROM recent r JOIN conversation c ON c.id = r.conversation AND c.head = r.head
WHERE r.head < sqlc.arg(before) ORDER BY r.head DESC LIMIT sqlc.arg(n);

-- name: RecentOf :many
SELECT c.* FROM recent r JOIN conversation c ON c.id = r.conversation AND c.head = r.head
WHERE r.channel = sqlc.arg(channel) AND r.head < sqlc.arg(before) ORDER BY r.head DESC LIMIT sqlc.arg(n);

-- name: WaitingAmong :many
SELECT m.conversation, count(*) AS n FROM pending p JOIN message m ON m.id = p.message
WHERE m.direction = 1 AND p.channel IN (sqlc.slice('channels')) AND m.conversation IN (sqlc.slice('conversations'))
GROUP BY m.conversation;

-- name: FailedAmong :many
SELECT d.conversation, count(*) AS n
FROM (SELECT m.conversation FROM message m WHERE m.state IN (5, 6) AND m.direction = 1 ORDER BY m.id DESC LIMIT sqlc.arg(most)) d
WHERE d.conversation IN (sqlc.slice('conversations'))
GROUP BY d.conversation;

-- name: DeadBefore :many
SELECT id FROM message WHERE state IN (5, 6) AND id < sqlc.arg(before) AND id > sqlc.arg(after) ORDER BY id DESC LIMIT sqlc.arg(n);

-- name: MessagesBetween :many
SELECT id FROM message WHERE id < sqlc.arg(before) AND id > sqlc.arg(after) ORDER BY id DESC LIMIT sqlc.arg(n);

-- name: KeepRecent :exec
INSERT OR IGNORE INTO recent (head, conversation, channel)
SELECT c.head, c.id, c.channel FROM conversation c
WHERE c.id IN (sqlc.slice('ids')) AND c.head > 0 AND NOT EXISTS (SELECT 1 FROM message m WHERE m.id = c.head);

-- name: PurgedAt :one
SELECT purged_at FROM indexing WHERE id = 1;

-- name: SetPurgedAt :exec
UPDATE indexing SET purged_at = ? WHERE id = 1;
