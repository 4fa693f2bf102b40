# `make run` builds and starts the host; `make test` does all that CI does.

GO      ?= go
SQLC    := $(GO) tool -modfile=$(CURDIR)/tools/sqlc/go.mod sqlc
BUF     := $(GO) tool -modfile=$(CURDIR)/tools/buf/go.mod buf
LINT    := $(GO) tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZ    ?= 2000x

.PHONY: run build test unit lint generate fresh fuzz fuzz-short bench torture faults

run: build
	./bin/pontoon serve

build:
	$(GO) build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/ ./host/cmd/pontoon
	$(GO) build -trimpath -o bin/pontoon-irc ./adapters/irc
	$(GO) build -trimpath -o bin/pontoon-webchat ./adapters/webchat

test: fresh lint unit fuzz-short

# -p 3: the end-to-end tests start servers of their own, and wait for them much of the time.
unit:
	$(GO) test -race -shuffle=on -timeout 10m -p 3 ./...

lint:
	$(LINT) run ./...

# generate writes everything that is generated; fresh fails if that changes anything.
generate:
	cd queries && $(SQLC) generate
	cd sdk/transport/pb && $(BUF) lint && $(BUF) generate
	$(GO) run ./sdk/schema/generate

fresh: generate
	git diff --exit-code --stat -- host/internal/store/db sdk/transport/pb sdk/schema
	$(GO) mod tidy -diff

# Every fuzz target, $(FUZZ) each: a count and not a time, as Go before 1.27 sometimes
# fails a target with "context deadline exceeded" when its time is up (golang/go#75804).
fuzz-short:
	GO=$(GO) sh tools/fuzz/run.sh $(FUZZ)

fuzz:
	$(MAKE) fuzz-short FUZZ=2000000x

bench: build
	./bin/pontoon bench

# The long form of the tests of faults, and a table of what they found. One at a
# time: how long recovery takes is part of it.
TORTURE := $(CURDIR)/bin/torture.md
torture: build
	@rm -f $(TORTURE)
	PONTOON_TORTURE=$(TORTURE) $(GO) test -count=1 -timeout 60m -parallel 1 -run '^TestTorture' ./host/cmd/pontoon
	PONTOON_TORTURE=$(TORTURE) $(GO) test -count=1 -timeout 60m -p 1 -run '^TestTorture' ./host/internal/bridge ./sdk
	@echo '| fault | tried | lost | duplicated | out of order | recovery, median (longest) |'; echo '|---|---|---|---|---|---|'; cat $(TORTURE)

# A table of what misbehaving plugins did to the host and to an adapter beside them.
faults:
	PONTOON_FAULTS=1 $(GO) test -count=1 -timeout 40m -v -run 'TestFaults|TestHostKilled|TestShimKilled|TestStartTime' ./host/cmd/pontoon
