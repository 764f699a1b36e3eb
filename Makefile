# Every target sets itself up: Python 3.11 or later, make and pip are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CODE := $(wildcard src tests examples benchmarks tools docs/hooks)
PYTESTFLAGS ?= -n 2 --dist worksteal -rs
# One thread of BLAS a process. Threads of OpenMP sleep while they wait: where two processes share two cores, those that
# spin take the time of the others, a hundredfold in fits on graphs of 2,000 nodes.
QUIETLY := OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive

export PIP_DISABLE_PIP_VERSION_CHECK := 1
MAKEFLAGS += --no-print-directory

# The published data sets, where a checkout has them beside it; tests that need them are skipped elsewhere.
ifneq ($(wildcard ../shared/raw),)
export GRAPHMRF_DATA ?= $(abspath ../shared/raw)
endif

.DEFAULT_GOAL := test
.PHONY: demo test check test-lowest test-highest mutate coverage wheel lint style bench tables shape docs gallery format clean chromium catalogue torture fuzz lock

demo: $(VENV)/.installed-core
	$(BIN)/python examples/demo.py

test: lint chromium
	$(QUIETLY) $(BIN)/python -m pytest $(PYTESTFLAGS)

# What a push must pass: style and layers of everything, types of changed files, and tests not marked slow.
CHANGED = $(shell git diff --name-only --diff-filter=d $$(git merge-base HEAD origin/main 2>/dev/null || echo HEAD) -- '*.py')
check: style
	$(if $(strip $(CHANGED)),$(BIN)/mypy $(CHANGED))
	$(QUIETLY) $(BIN)/python -m pytest $(PYTESTFLAGS) -m "not slow"

# The same tests with the lowest and with the highest versions that pyproject.toml allows, each in its own environment.
test-lowest: $(VENV)-lowest/.installed
	$(VENV)-lowest/bin/python tools/lowest_versions.py > $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/python -m pip install -qq -r $(VENV)-lowest/lowest.txt
	$(QUIETLY) $(VENV)-lowest/bin/python -m pytest $(PYTESTFLAGS)

test-highest: $(VENV)-highest/.installed
	$(VENV)-highest/bin/python -m pip install -qq --upgrade --upgrade-strategy eager --editable '.[test]' torch==2.13.0
	$(QUIETLY) $(VENV)-highest/bin/python -m pytest $(PYTESTFLAGS)

# Small faults put into linalg, model and field, COUNT in each and JOBS at a time, and the share that tests find;
# continues what was begun.
mutate: $(VENV)/.installed-test $(VENV)/.installed-quality
	$(QUIETLY) $(BIN)/python -m tools.mutate --count $(or $(COUNT),100) --seed $(SEED) --jobs $(or $(JOBS),2)

# Lines and branches of the package that the tests run, in all processes they start.
coverage: $(VENV)/.installed-test $(VENV)/.installed-quality
	$(BIN)/coverage erase
	$(QUIETLY) $(BIN)/coverage run -m pytest $(PYTESTFLAGS)
	$(BIN)/coverage combine -q && $(BIN)/coverage report --skip-covered --sort=miss

$(VENV)-%/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install -qq torch==2.13.0
	$(VENV)-$*/bin/python -m pip install -qq --editable '.[test]'
	touch $@

# The versions that the tests run with on this platform, with hashes; `pip install --require-hashes -r` takes them.
lock: | $(BIN)/python
	$(BIN)/python -m pip install -qq --dry-run --ignore-installed --report $(VENV)/report.json torch==2.13.0 '.[test]'
	$(BIN)/python tools/locked_versions.py $(VENV)/report.json > requirements.lock

# The wheel and the source archive, checked, and the demo from the wheel in an environment with nothing else. With TAG
# the version must be that of the tag.
wheel: | $(BIN)/python
	@test -z "$(TAG)" || grep -qx 'version = "$(patsubst v%,%,$(TAG))"' pyproject.toml
	rm -rf dist $(VENV)-wheel && $(BIN)/python -m pip install -qq build twine
	$(BIN)/python -m build --quiet && $(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv $(VENV)-wheel && $(VENV)-wheel/bin/python -m pip install -qq dist/*.whl
	cd $(VENV)-wheel && bin/python $(abspath examples/demo.py)

lint: style
	$(BIN)/mypy $(CODE)

style: $(VENV)/.installed-test
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m benchmarks.record --check

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

# Tables of the documentation, written from benchmarks/results.jsonl.
tables: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.record < /dev/null

# Bad and odd inputs; commands that are killed or short of disk or memory; fuzzed files. See docs/reliability.md.
SEED ?= 0
catalogue: $(VENV)/.installed-test
	$(BIN)/python -m tools catalogue

torture: $(VENV)/.installed-test
	$(QUIETLY) $(BIN)/python -m tools.torture --count $(or $(COUNT),500) --seed $(SEED)

fuzz: $(VENV)/.installed-test
	$(QUIETLY) $(BIN)/python -m tools.fuzz --count $(or $(COUNT),100000) --seed $(SEED)

# The shape of the source tree beside its targets; WHY=--why names the places.
shape: $(VENV)/.installed-test
	$(BIN)/python -m tools.shape $(WHY)

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pictures of the gallery and of the pages, drawn anew by the examples.
gallery: $(VENV)/.installed-test
	$(BIN)/python examples/gallery

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-highest $(VENV)-wheel build dist site demo mutants .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# Browser tests use the system's Chromium. They must run in CI, so CI installs it; elsewhere they skip without it.
chromium:
	@if [ "$(CI)" = true ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	fi

$(VENV)/.installed-core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --editable .
	touch $@

# PyTorch is pinned, and comes first: any other version would bring gigabytes for devices that tests do not need.
$(VENV)/.installed-test $(VENV)/.installed-bench: | $(VENV)/.installed-torch

$(VENV)/.installed-torch: | $(BIN)/python
	$(BIN)/python -m pip install -qq torch==2.13.0
	touch $@

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --editable '.[$*]'
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
