#!/bin/sh
# Runs every fuzz target for $1 each (1000x inputs, or 20s), two packages at a time. A
# package's program is built once for all of its targets, since to link it takes
# longer than to run it.
set -eu
cd "$(dirname "$0")/../.."
GO="${GO:-go}"
if [ $# = 1 ]; then
	cache="$($GO env GOCACHE)/fuzz"
	grep -rHo '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' . | sed 's|/[^/]*:func | |' |
		awk '{ targets[$1] = targets[$1] " " $2 } END { for (dir in targets) print dir targets[dir] }' |
		xargs -P 2 -L 1 sh "$0" "$1" "$cache"
	exit
fi
count="$1" cache="$2" dir="$3"
shift 3
bin="$(mktemp)" log="$(mktemp)"
trap 'rm -f "$bin" "$log"' EXIT
case "$count" in
# To watch where inputs lead, all that is linked is built once more: not for a few, which
# take what the other tests have built.
*x) build=-race ;;
*) build=-fuzz=. ;;
esac
$GO test -c "$build" "-ldflags=-s -w" -o "$bin" "$dir" || exit 255
cd "$dir"
for target in "$@"; do
	echo "fuzz $dir $target"
	# Go before 1.27 sometimes calls the end of the time a failure (golang/go#75804).
	if ! "$bin" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$count" -test.fuzzminimizetime=2s -test.parallel=2 -test.fuzzcachedir="$cache/$dir" >"$log" 2>&1 &&
		{ ! grep -q 'context deadline exceeded' "$log" || grep -q 'Failing input' "$log"; }; then
		cat "$log" >&2
		exit 255
	fi
	tail -n 3 "$log" | grep '^fuzz: elapsed' || true
done
