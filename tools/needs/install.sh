#!/usr/bin/env bash
# Installs what `make test` needs beyond Go, make, git and Debian: once, as root or with
# sudo. It asks nothing and touches nothing when all is there. The linter and, where
# Debian's is older, Node.js 20 go into $PONTOON_NEEDS/bin; the Makefile puts that
# before PATH.
set -euo pipefail

packages=(chromium gcc git inspircd libc6-dev make nodejs python3 python3-venv sqlite3 strace systemd util-linux)
command -v npm >/dev/null || packages+=(npm) # some packages of nodejs bring it along
installed=" $(dpkg-query -W -f '${Package}:${db:Status-Status} ' "${packages[@]}" 2>/dev/null || true)"
missing=()
for p in "${packages[@]}"; do
	[[ $installed == *" $p:installed "* ]] || missing+=("$p")
done
if ((${#missing[@]})); then
	as_root=()
	if ((EUID != 0)); then
		if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
			echo "The tests need more programs; as root: apt-get install --no-install-recommends ${missing[*]}" >&2
			exit 1
		fi
		as_root=(sudo -n)
	fi
	"${as_root[@]}" apt-get update -qq
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

dir="${PONTOON_NEEDS:-${XDG_CACHE_HOME:-$HOME/.cache}/pontoon/needs}"
export PATH="$dir/bin:$PATH"

new_enough() { node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' 2>/dev/null; }
if ! new_enough; then # Debian 12 has 18
	case "$(uname -m)" in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch="$(uname -m)" ;; esac
	mkdir -p -m 0700 "$dir/bin"
	npm install --silent --no-audit --no-fund --prefix "$dir" "node-linux-$arch@20.19.5"
	ln -sf "../node_modules/node-linux-$arch/bin/node" "$dir/bin/node"
	hash -r
	new_enough || { echo "Node.js is $(node --version): install 20 or later" >&2; exit 1; }
fi

# The linter takes longer to build than all of the host.
root="$(cd "$(dirname "$0")/../.." && pwd)"
wanted="$(sed -n 's|.*github.com/golangci/golangci-lint/v2 v\([^ ]*\).*|\1|p' "$root/tools/lint/go.mod")"
if [[ "$(golangci-lint version --short 2>/dev/null)" != "$wanted" ]]; then
	GOFLAGS='' "${GO:-go}" build -C "$root" -modfile=tools/lint/go.mod -trimpath \
		-ldflags "-s -w -X main.version=$wanted" -o "$dir/bin/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
fi
