-- name: InsertAudit :exec
INSERT INTO audit (at, actor, via, remote, action, target, detail, was, became, subject, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: AuditsAmong :many
SELECT * FROM audit WHERE id IN (sqlc.slice('ids')) ORDER BY id;

-- name: AuditsOfVersions :many
SELECT * FROM audit WHERE version > 0 AND subject = sqlc.arg(subject) AND version > sqlc.arg(after) ORDER BY version DESC LIMIT sqlc.arg(n);

-- name: Audits :many
SELECT a.id, CAST(octet_length(a.detail) + coalesce(octet_length(a.was), 0) + coalesce(octet_length(a.became), 0) AS INTEGER) AS size FROM audit a
WHERE id < sqlc.arg(before) AND at >= sqlc.arg(since) AND at < sqlc.arg(until)
  AND (CAST(sqlc.arg(actor) AS TEXT) = '' OR actor = CAST(sqlc.arg(actor) AS TEXT))
  AND (CAST(sqlc.arg(action) AS TEXT) = '' OR action = CAST(sqlc.arg(action) AS TEXT) OR instr(action, CAST(sqlc.arg(action) AS TEXT) || '.') = 1)
  AND (CAST(sqlc.arg(target) AS TEXT) = '' OR target = CAST(sqlc.arg(target) AS TEXT))
ORDER BY id DESC LIMIT sqlc.arg(n);

-- name: AuditsAfter :many
SELECT a.id, CAST(octet_length(a.detail) + coalesce(octet_length(a.was), 0) + coalesce(octet_length(a.became), 0) AS INTEGER) AS size FROM audit a
WHERE id > sqlc.arg(after) AND at >= sqlc.arg(since) AND at < sqlc.arg(until)
  AND (CAST(sqlc.arg(actor) AS TEXT) = '' OR actor = CAST(sqlc.arg(actor) AS TEXT))
  AND (CAST(sqlc.arg(action) AS TEXT) = '' OR action = CAST(sqlc.arg(action) AS TEXT) OR instr(action, CAST(sqlc.arg(action) AS TEXT) || '.') = 1)
  AND (CAST(sqlc.arg(target) AS TEXT) = '' OR target = CAST(sqlc.arg(target) AS TEXT))
ORDER BY id LIMIT sqlc.arg(n);
