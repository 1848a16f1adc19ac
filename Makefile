# Two commands are all a newcomer needs: `make run` and `make test`. `make help` lists the rest.

export GOTOOLCHAIN = go1.27.3

GO       ?= go
BIN      := bin/metaq
VERSION  ?= $(shell scripts/version)
LDFLAGS  := -s -w -X main.version=$(VERSION)
BUILD    := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'
FUZZTIME ?= 60s
# yes: the official clients too where a JDK and Maven are present; no: without them
INTEROP  ?= yes
PLATFORMS ?= linux/amd64 linux/arm64

.DEFAULT_GOAL := help
.PHONY: help build run test check format vet arch generated race interop bench fuzz lint dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/metaq
	$(BUILD) -o $(BIN) ./cmd/metaq

run: build ## build, then start the server with its data in ./data, on the usual ports, loopback only
	$(BIN) server --data ./data

test: check ## everything that must be green, official clients included where a JDK and Maven are present
	@INTEROP='$(INTEROP)' scripts/interop-if-possible

check: format vet arch generated race ## make test without the official clients

format:
	@scripts/format-check

vet:
	CGO_ENABLED=0 $(GO) vet ./...

arch: # first and alone, since its messages explain what other tests would only trip over
	$(GO) test -count=1 ./internal/archtest

generated:
	@scripts/generated-check

race:
	CGO_ENABLED=1 $(GO) test -race ./...

interop: build ## official clients against bin/metaq (needs a JDK and Maven)
	test/interop/run

bench: build ## measure: the comparison tool in the folder $PEERS if that is set, else bin/metaq bench
	@scripts/bench

fuzz: ## run each fuzz target for FUZZTIME (60s)
	@FUZZTIME='$(FUZZTIME)' scripts/fuzz

lint: ## golangci-lint with .golangci.yml (built once from the tools module)
	$(GO) tool -modfile=tools/go.mod golangci-lint run ./...

dist: ## static binaries for PLATFORMS, packed, with checksums, in dist/
	@VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)' LDFLAGS='$(LDFLAGS)' scripts/dist

clean: ## remove what the targets above built (never ./data)
	rm -rf bin dist
