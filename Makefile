# Every target makes what it needs. `make test` and `make demo` work on a clean checkout with Python 3.11+ and npm.

PYTHON ?= python3
# Tests run side by side: those with the real Claude Code mostly wait.
JOBS ?= 3
# What `make long` runs.
LONG ?= tests/load tests/crash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# pip's own news is not about this project.
PIP := $(BIN)/python -m pip --disable-pip-version-check

# No index address and no header command: the lock files hold names, versions and hashes, nothing about a machine.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-annotate --no-emit-index-url --no-emit-find-links

.PHONY: test long demo lint format bench lock clean venv

test: $(READY)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -p tests.tier_times $(ARGS)

# All of the load and crash tests, of which `make test` runs a part: hours. What they did is logged as they go.
long: $(READY)
	TURNPOST_LONG=1 $(BIN)/python -m pytest --timeout 14400 --log-cli-level INFO $(LONG) $(ARGS)

demo: $(READY)
	$(BIN)/turnpost demo $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m tests.bench $(ARGS)

lock: $(READY)
	$(COMPILE) pyproject.toml -o requirements.lock $(ARGS)
	$(COMPILE) pyproject.toml --group dev -o requirements-dev.lock -c requirements.lock $(ARGS)

venv: $(READY)

# The stamp is written last: an install that broke off is done again.
$(READY): requirements-dev.lock pyproject.toml hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "turnpost needs Python 3.11 or later; set PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
