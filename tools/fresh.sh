#!/bin/sh
# Is the generated code what `make generate` makes of its sources? To build the
# generators takes minutes, so `make generate` notes the sums of the sources, of what
# it made and of the generators' versions: while they are the same nothing is to be
# made anew. `fresh.sh write` notes them, `fresh.sh check` compares them.
set -eu
cd "$(dirname "$0")/.."
noted=tools/generated.sum

sums() {
	git ls-files -z --cached --others --exclude-standard -- queries schema/sqlite host/internal/ledger/sqlite/db \
		'host/internal/console/*.templ' 'host/internal/console/*_templ.go' sdk/transport/pb \
		tools/sqlc tools/templ tools/buf | LC_ALL=C sort -zu | xargs -0 sha256sum
}

case "$1" in
write) sums >"$noted.new" && mv "$noted.new" "$noted" ;;
check) [ "$(sums)" = "$(cat "$noted")" ] ;;
esac
