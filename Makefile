# Everything happens in a virtual environment of its own, .venv, with the versions in constraints.txt.
# Needs Python 3.11 or later, make and a package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
WORKERS ?= 2
PYTEST := pytest --quiet -n $(WORKERS) --dist worksteal
PEERS := .venv-peers

# The newest Python here and the newest packages, in an environment of its own, and some tests of each floor.
NEWEST = $(shell .ci/newest-python)
NEWEST_VENV := .venv-newest
LOWEST_VENV := .venv-lowest
DOCS_VENV := .venv-docs
EXTRAS_VENV := .venv-extras
GYMNAX_VENV := .venv-gymnax
SITE := build/docs
QUICK := $(patsubst %,tests/test_%.py,checkpoints cli exact figures gaussian_losses gymnasium networks package policies \
	records replay report study_pool study_search study_work)
# The tests of which some are skipped where a package is missing that `make test` does not install.
EXTRAS := $(patsubst %,tests/test_%.py,browser dm_control export gymnasium minigrid pages study study_pool study_search study_slurm use)

# Pyright runs as it was installed: it looks for no newer version and downloads nothing.
export PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run bench test test-slow coverage browser-test test-newest test-lowest test-extras test-gymnax docs dist lint format \
	install hooks clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.installed ## Install the package, then run its headline experiment, with a report of it.
	@$(BIN)/python -m experiments run headline --until solved

bench: $(VENV)/.installed $(PEERS)/.installed ## Time training beside the peers, which get an environment of their own.
	@$(BIN)/python -m experiments.speed.bench --peer $(PEERS)/bin/python

test: lint ## Install the package and its tools, then check everything and run the fast tests.
	@echo "== pytest"
	@$(BIN)/$(PYTEST) -m "not slow"

test-slow: $(VENV)/.installed-dev ## Run the tests of more than two seconds, most of which train whole runs.
	@echo "== pytest, slow tests"
	@$(BIN)/$(PYTEST) -m slow

coverage: $(VENV)/.installed-dev ## Measure what share of the package's lines the fast tests run.
	@echo "== pytest, coverage"
	@$(BIN)/$(PYTEST) -m "not slow" --cov=uppertail --cov-report=term:skip-covered

browser-test: $(VENV)/.installed-dev ## Look at a report in a real browser: needs Chromium (Debian: apt-get install chromium).
	@$(PIP) install --constraint constraints.txt --editable ".[dev,browser]"
	@UPPERTAIL_BROWSER=required $(BIN)/pytest --quiet tests/test_browser.py

test-newest: ## Run some of the tests with the newest Python here and the newest packages.
	@if [ -z "$(NEWEST)" ]; then echo "== no Python above 3.11 here: nothing more to test with"; \
	else $(MAKE) --no-print-directory $(NEWEST_VENV)/.installed && echo "== pytest, $$($(NEWEST_VENV)/bin/python --version)" \
	&& $(NEWEST_VENV)/bin/$(PYTEST) -m "not slow" $(QUICK); fi

test-lowest: $(LOWEST_VENV)/.installed ## Run the same tests with the lowest versions that pyproject.toml allows.
	@echo "== pytest, lowest versions"
	@$(LOWEST_VENV)/bin/$(PYTEST) -m "not slow" $(QUICK)

test-extras: $(EXTRAS_VENV)/.installed test-gymnax ## Install the optional packages, and run the tests that need one.
	@echo "== pytest, optional packages"
	@$(EXTRAS_VENV)/bin/$(PYTEST) $(EXTRAS)

test-gymnax: $(GYMNAX_VENV)/.installed ## Test environments of bsuite, gymnax and XLand-MiniGrid, some of which hold other packages back.
	@echo "== pytest, bsuite, gymnax and XLand-MiniGrid"
	@$(GYMNAX_VENV)/bin/pytest --quiet $(patsubst %,tests/test_%.py,bsuite cartpole_swingup deep_sea gymnax)

docs: $(DOCS_VENV)/.installed ## Build the documentation site in build/docs; its programs run, warnings are errors.
	@echo "== sphinx"
	@$(DOCS_VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going -b html -d build/doctrees docs $(SITE)
	@$(DOCS_VENV)/bin/python .ci/check-links $(SITE)
	@echo "== open $(SITE)/index.html"

dist: $(VENV)/.installed-dev ## Build wheel and sdist in isolation, look into them, and use the wheel in a fresh environment.
	@rm -rf dist
	@echo "== build"
	@$(BIN)/python -m build --outdir dist . > build.log 2>&1 || { cat build.log; exit 1; }
	@rm build.log
	@$(BIN)/python -m twine check --strict dist/*
	@.ci/check-dist $(BIN)/python dist

lint: $(VENV)/.installed-dev ## Check style, format, types and the direction of imports.
	@echo "== ruff check"
	@$(BIN)/ruff check --quiet
	@echo "== ruff format"
	@$(BIN)/ruff format --check
	@echo "== pyright"
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@echo "== import-linter"
	@$(BIN)/lint-imports --no-logo
	@echo "== workflows"
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

format: $(VENV)/.installed-dev ## Rewrite the code in the project's format.
	@$(BIN)/ruff check --quiet --fix --exit-zero
	@$(BIN)/ruff format

install: $(VENV)/.installed-dev ## Install the package and its tools, and nothing else.

hooks: $(VENV)/.installed-dev ## Run the checks of `make lint` before each commit.
	@$(BIN)/pre-commit install

clean: ## Remove the virtual environment, the caches and the builds; results stay.
	@rm -rf $(VENV) $(PEERS) $(NEWEST_VENV) $(LOWEST_VENV) $(DOCS_VENV) $(EXTRAS_VENV) $(GYMNAX_VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "UpperTail needs Python 3.11 or later, but $(PYTHON) is %d.%d: name another with `make PYTHON=python3.12 ...`." % sys.version_info[:2])'
	@echo "== creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "== installing UpperTail"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "== installing UpperTail and its tools"
	@$(PIP) install --constraint constraints.txt --editable ".[dev]"
	@touch $(VENV)/.installed $@

$(NEWEST_VENV)/.installed: pyproject.toml
	@echo "== creating $(NEWEST_VENV)"
	@$(NEWEST) -m venv --clear $(NEWEST_VENV)
	@$(NEWEST_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --editable ".[test]"
	@touch $@

$(LOWEST_VENV)/.installed: pyproject.toml .ci/lowest | $(BIN)/python
	@echo "== creating $(LOWEST_VENV)"
	@$(PYTHON) -m venv --clear $(LOWEST_VENV)
	@$(LOWEST_VENV)/bin/python .ci/lowest > $(LOWEST_VENV)/lowest.txt
	@$(LOWEST_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --constraint $(LOWEST_VENV)/lowest.txt --editable ".[test,search,jobs]"
	@touch $@

$(EXTRAS_VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "== creating $(EXTRAS_VENV)"
	@$(PYTHON) -m venv $(EXTRAS_VENV)
	@$(EXTRAS_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt --editable ".[test-extras]"
	@touch $@

$(GYMNAX_VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "== creating $(GYMNAX_VENV)"
	@$(PYTHON) -m venv $(GYMNAX_VENV)
	@$(GYMNAX_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --editable ".[test,bsuite,gymnax,xminigrid]"
	@touch $@

$(DOCS_VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "== creating $(DOCS_VENV)"
	@$(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt --editable ".[docs]"
	@touch $@

$(PEERS)/.installed: experiments/peers/requirements.txt | $(BIN)/python
	@echo "== creating $(PEERS)"
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip --quiet --disable-pip-version-check install --requirement experiments/peers/requirements.txt
	@touch $@
