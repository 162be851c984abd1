# One page of commands; `make help` lists them.
VENV := .venv
PY := $(VENV)/bin/python
PROJECTS := proto chassis gateway svc-catalog svc-tickets svc-occupancy svc-webhooks deploy/local
PROTOS = $(shell cd proto && find makeready -name '*.proto' | sort)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help proto lock

help:  ## Show this page
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

proto:  ## Generate the code of the contracts
	cd proto && buf format -w && rm -rf gen/makeready && mkdir -p gen && \
	  python -m grpc_tools.protoc -I. --python_out=gen --grpc_python_out=gen \
	    --mypy_out=quiet:gen --mypy_grpc_out=quiet:gen $(PROTOS)

lock:  ## Choose the versions of all dependencies anew (needs uv)
	uv lock --upgrade
	uv export -q --frozen --all-packages --no-emit-workspace --no-header --no-annotate -o requirements.lock
	uv export -q --frozen --all-packages --all-extras --no-emit-workspace --no-header --no-annotate -o requirements-dev.lock
