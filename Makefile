# `make run` builds and starts the host; `make test` does all that CI does; `make quick`
# is for between two edits, and needs Go alone.

GO      ?= go
SQLC    := $(GO) tool -modfile=$(CURDIR)/tools/sqlc/go.mod sqlc
BUF     := $(GO) tool -modfile=$(CURDIR)/tools/buf/go.mod buf
TEMPL   := $(GO) tool -modfile=$(CURDIR)/tools/templ/go.mod templ
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZ    ?= 1000x

# What tools/needs/install.sh installs for the tests beside Debian's packages.
export PONTOON_NEEDS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pontoon/needs
export PATH := $(PONTOON_NEEDS)/bin:$(PATH)

.PHONY: run build size quick test needs unit lint generate schemas fresh fuzz fuzz-short bench torture security faults screenshots

run: build
	./bin/pontoon serve

# Everything is built with the same flags, but for the race detector, so that the build
# cache has each package once: for the linter, the shipped program, and the programs
# that tests build, which is why this is in the environment.
# grpcnotrace: gRPC's pages for debugging, which we don't serve, bring html/template,
# and with it the linker keeps every exported method (3 MB). The console's pages are
# functions that make functions: inlined, each page has a copy of all in it (1 MB).
# SQLite is C that was translated to Go and keeps its memory outside of Go's: the race
# detector and the checks of pointers find nothing in it, and looking took two thirds
# of the tests' time. The packages that are WITHOUT_RACE share nothing either, and have
# no copy of a generic type of sync, which the linker could take for everybody's.
MODULE := github.com/pontoon-bridge/pontoon
WITHOUT_RACE := unicode/utf8 golang.org/x/crypto/... github.com/yuin/goldmark/...
export GOFLAGS := $(GOFLAGS) -trimpath -tags=grpcnotrace -gcflags=$(MODULE)/host/internal/console=-l \
	-gcflags=modernc.org/...=-d=checkptr=0 '-gcflags=modernc.org/sqlite/lib=-d=checkptr=0 -race=false' \
	$(foreach p,$(WITHOUT_RACE),'-gcflags=$(p)=-race=false')

# -s -w: no tables for debuggers, which are a third of the size. Stack traces and
# profiles have their names without them.
SHIPPED := -ldflags "-s -w -X main.version=$(VERSION)"
build:
	$(GO) build $(SHIPPED) -o bin/ ./host/cmd/pontoon
	$(GO) build $(SHIPPED) -o bin/pontoon-irc ./adapters/irc
	$(GO) build $(SHIPPED) -o bin/pontoon-webchat ./adapters/webchat

test: needs fresh lint size unit fuzz-short

# What the shipped host may have, in bytes. docs/architecture.md says what made it larger.
LARGEST := 32000000
size: build
	@size=$$(wc -c < bin/pontoon); echo "bin/pontoon has $$size bytes"; \
	test $$size -le $(LARGEST) || { echo "expected at most $(LARGEST)"; exit 1; }

needs:
	tools/needs/install.sh

# Without what builds the host, measures it, links gRPC or starts browsers, interpreters or servers of others, which is in
# these packages, and without the race detector, vet and tables for debuggers. PATH has nothing but Go, so that a
# test which needs more fails here, and does not hide. -p 4: some packages wait most of their time. Compiling takes
# longer than the tests: it takes a seventh less if nothing is inlined in the largest packages (-l), and a fifth
# less if the compiler collects its heap seldom (GOGC).
END_TO_END := host/cmd/pontoon|tools/bench.*|host/internal/(console|browser|plugin|supervisor/.*|ledger/sqlite/deepbench)|sdk/(plugin|transport/(grpcconn|pb)|schema/generate)|adapters/.*
quick: export GOFLAGS += $(foreach p,modernc.org/sqlite/lib modernc.org/libc $(MODULE)/host/internal/api,'-gcflags=$(p)=-l')
quick: export GOGC := 400
quick: export GOMEMLIMIT := 2GiB
quick:
	packages=$$($(GO) list ./... | grep -vE '/($(END_TO_END))$$') && \
	PATH=$$($(GO) env GOROOT)/bin CGO_ENABLED=0 $$($(GO) env GOROOT)/bin/go test -p 4 -short -vet=off -ldflags='-s -w' $$packages

# What is built with the race detector is told not to look at each byte that encoding/json
# reads, which took most of what large frames cost. -l: the calls into reflect, by which
# it reads and writes values of ours, stay calls, and are looked at. Tests that build
# programs with the detector have this from the environment.
unit: export PONTOON_RACE := -gcflags=encoding/json=-race=false -l

# -parallel 4: the end-to-end tests start servers of their own, and wait for them
# much of the time. -vet=off: lint has done that.
unit:
	$(GO) test -race '$(PONTOON_RACE)' -vet=off -shuffle=on -timeout 60m -p 2 -parallel 4 ./...

lint: needs
	golangci-lint run ./...

# generate writes everything that is generated; fresh fails if that changes anything.
# The generators are built only if something changed since they ran.
generate: schemas
	cd queries && $(SQLC) generate
	$(TEMPL) generate -path host/internal/console
	cd sdk/transport/pb && $(BUF) lint && $(BUF) generate
	tools/fresh.sh write

schemas:
	$(GO) run ./sdk/schema/generate

fresh: schemas
	tools/fresh.sh check || $(MAKE) generate
	git diff --exit-code --stat -- host/internal/ledger/sqlite/db host/internal/console sdk/transport/pb sdk/protocol/schemas
	$(GO) mod tidy -diff

# Every fuzz target: a few inputs each here, and 20 seconds in `make fuzz`.
fuzz-short:
	GO=$(GO) sh tools/fuzz/run.sh $(FUZZ)

fuzz:
	$(MAKE) fuzz-short FUZZ=20s

# Measures the host: make bench BENCH_ARGS='fair --rounds 9', or '--help' for what
# there is; deepbench is about a store with many messages, and runs no host.
bench: build
	$(GO) build -trimpath -o bin/ ./tools/bench/cmd/bench ./host/internal/ledger/sqlite/deepbench
	./bin/bench $(BENCH_ARGS)

# The long form of the tests of faults, and a table of what they found. One at a
# time: how long recovery takes is part of it.
TORTURE := $(CURDIR)/bin/torture.md
torture: build
	@rm -f $(TORTURE)
	PONTOON_TORTURE=$(TORTURE) $(GO) test -count=1 -timeout 60m -parallel 1 -run '^TestTorture' ./host/cmd/pontoon
	PONTOON_TORTURE=$(TORTURE) $(GO) test -count=1 -timeout 60m -p 1 -run '^TestTorture' ./host/internal/bridge ./sdk
	@echo '| fault | tried | lost | duplicated | out of order | recovery, median (longest) |'; echo '|---|---|---|---|---|---|'; cat $(TORTURE)

# Attacks on a host on this machine, tried more often than in make test, and a table
# of how many got through.
SECURITY := $(CURDIR)/bin/security.md
security: build
	@rm -f $(SECURITY)
	PONTOON_SECURITY=$(SECURITY) $(GO) test -count=1 -timeout 30m -p 1 -run '^Test(Console)?Hostile' ./host/...
	@echo '| attack | tries | through | how |'; echo '|---|---|---|---|'; cat $(SECURITY)

# A table of what misbehaving plugins did to the host and to an adapter beside them.
faults:
	PONTOON_FAULTS=1 $(GO) test -count=1 -timeout 40m -v -run 'TestFaults|TestHostKilled|TestShimKilled|TestStartTime' ./host/cmd/pontoon

# Pictures of every page of the console, at 360 and 1440 points, light and dark.
screenshots:
	@rm -rf bin/screenshots && mkdir -p bin/screenshots
	PONTOON_SHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -timeout 20m -run '^TestConsole|^TestChartsInBrowser' ./host/cmd/pontoon ./host/internal/console
	@echo "bin/screenshots has $$(ls bin/screenshots | wc -l) pictures"
