-- name: InsertConnection :exec
INSERT INTO connection (kind, owner, what, at, latest, count, remote, credential, code, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: RepeatConnection :execrows
UPDATE connection SET count = connection.count + sqlc.arg(n), latest = max(connection.latest, sqlc.arg(latest))
WHERE id = (
  SELECT c.id FROM connection c
  WHERE c.kind = sqlc.arg(kind) AND c.owner = sqlc.arg(owner) AND c.id > sqlc.arg(beyond) AND c.what = sqlc.arg(what) AND c.remote = sqlc.arg(remote)
    AND c.credential = sqlc.arg(credential) AND c.code = sqlc.arg(code) AND c.why = sqlc.arg(why) AND c.at >= sqlc.arg(since)
  ORDER BY c.id DESC LIMIT 1
);

-- name: NthConnection :one
SELECT id FROM connection WHERE kind = sqlc.arg(kind) AND owner = sqlc.arg(owner) ORDER BY id DESC LIMIT 1 OFFSET sqlc.arg(n);

-- name: DeleteConnectionsBelow :exec
DELETE FROM connection WHERE kind = sqlc.arg(kind) AND owner = sqlc.arg(owner) AND id <= sqlc.arg(id);

-- name: DeleteOldConnections :execrows
DELETE FROM connection WHERE id IN (SELECT c.id FROM connection c WHERE c.latest < sqlc.arg(before) ORDER BY c.latest LIMIT sqlc.arg(n));

-- name: ConnectionsOf :many
SELECT * FROM connection
WHERE kind = sqlc.arg(kind) AND owner = sqlc.arg(owner) AND id < sqlc.arg(before)
  AND (CAST(sqlc.arg(what) AS INTEGER) < 0 OR what = CAST(sqlc.arg(what) AS INTEGER))
ORDER BY id DESC LIMIT sqlc.arg(n);

-- name: Connections :many
SELECT * FROM connection
WHERE id < sqlc.arg(before)
  AND (CAST(sqlc.arg(what) AS INTEGER) < 0 OR what = CAST(sqlc.arg(what) AS INTEGER))
ORDER BY id DESC LIMIT sqlc.arg(n);
