# Two commands matter: `make up` starts gpuwise, `make test` proves it. Both set up everything themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help up demo test lint types imports tests bench wheel lock docs clean

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "gpuwise needs Python 3.11 or newer: install it, or name one with make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment: on Debian and Ubuntu install python3-venv"; exit 1; }

$(VENV)/.server: $(BIN)/python requirements/server.txt pyproject.toml
	@echo "Installing gpuwise into $(VENV) (once) …"
	@$(PIP) install --require-hashes -r requirements/server.txt
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.server requirements/dev.txt
	@echo "Installing the tools of the tests into $(VENV) (once) …"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

up: $(VENV)/.server ## start gpuwise on http://127.0.0.1:8787 (live GPUs, or the simulated demo fleet)
	@exec $(BIN)/gpuwise up

demo: $(VENV)/.server ## start the simulated demo fleet
	@exec $(BIN)/gpuwise demo

test: lint types imports tests ## lint, types, import order, tests on SQLite and PostgreSQL

lint: $(VENV)/.dev ## Ruff
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, strict
	@$(BIN)/mypy

imports: $(VENV)/.dev ## import order of the house
	@$(BIN)/lint-imports

# Three at once on two cores: a third of the tests wait for clocks and for killed processes.
tests: $(VENV)/.dev ## pytest, both databases
	@$(BIN)/pytest -n 3 --dist loadgroup $(PYTEST_ARGS)

bench: $(VENV)/.dev ## benchmarks; figures are quoted in bench/README.md
	@$(BIN)/python -m bench.run

wheel: $(VENV)/.dev ## build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel

docs: $(VENV)/.dev ## rewrite the generated pages under docs/
	@$(BIN)/python -m docs.build

lock: ## renew requirements/*.txt: names, versions and hashes, no addresses (needs uv)
	@for part in server dev; do \
	  opts="--extra server --group build"; test $$part = dev && opts="--extra server --group dev"; \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links pyproject.toml $$opts -o requirements/$$part.txt || exit 1; done
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements/agent.txt

clean: ## remove the environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist build
