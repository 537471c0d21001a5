# `make help` lists what there is. Every target sets up its own environment first.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
MAIN_NOTEBOOK ?= notebooks/03_many_quantiles.md
# Names of notebooks for `make notebooks`, none for all: make notebooks NOTEBOOKS="00_tour 03_many_quantiles"
NOTEBOOKS ?=
# Of the book: student has exercises, instructor their solutions too
EDITION ?= student
PORT ?= 8000
# make lock UPGRADE=--upgrade moves to the newest versions
UPGRADE ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.pq-installed
READY := $(VENV)/.pq-ready
PEERS := $(VENV)-peers
PEERS_READY := $(PEERS)/.pq-ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help system setup run test test-long lint types unit checks nbval notebooks digits sweep book serve-book lab bench bench-error bench-peers data-check format lock clean

# Small matrices only: more threads would just fight over the cores with the test workers.
lint types unit checks nbval notebooks digits sweep book test-long: export OMP_NUM_THREADS = 1
lint types unit checks nbval notebooks digits sweep book test-long: export OPENBLAS_NUM_THREADS = 1

# Kernels start without the user's IPython profile and show figures inline, whatever the shell says.
nbval: export MPLBACKEND =
nbval: export IPYTHONDIR = $(abspath $(VENV))/ipython

help: ## list the targets (default)
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# What cannot come from the lock: a recipe that tries to install packages where the programs are not there. It never
# fails: what is missing is left out, aloud.  $(1) programs, $(2) packages, $(3) what it is, $(4) what is left out
define with_system
@if command -v $(1) >/dev/null; then echo "$(3) is there"; \
elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2); } || \
    echo "make: NO $(3): apt-get failed; $(4) are LEFT OUT" >&2; \
else echo "make: NO $(3): install $(2); $(4) are LEFT OUT" >&2; fi
endef

system: ## install a browser for tests that look at pages and a Java for Spark, where root and apt are there
	$(call with_system,chromium >/dev/null && command -v chromedriver,chromium chromium-driver,BROWSER,tests that look at pages)
	$(call with_system,java,default-jre-headless,JAVA,tests of tables on Spark)

# Copes with a $(VENV) that somebody made by other means: it is kept if its Python runs, and brought to the locked versions.
$(INSTALLED): requirements.lock pyproject.toml
	@if [ -x $(BIN)/python ] && $(BIN)/python -c '' 2>/dev/null; then :; else \
	  command -v $(PYTHON) >/dev/null || { echo "make: no '$(PYTHON)' here; say make PYTHON=/path/to/python3.11" >&2; exit 2; }; \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "make: pq needs Python 3.11 or newer and '$(PYTHON)' is older; say make PYTHON=/path/to/python3.11" >&2; exit 2; }; \
	  echo "Creating $(VENV)"; $(PYTHON) -m venv --clear $(VENV); fi
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: the Python in $(VENV) is older than 3.11; remove $(VENV) and say make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	@echo "Installing the locked packages into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(INSTALLED)
	@echo "Compiling the inner loops, half a minute"
	@$(BIN)/python -m pq.private
	@touch $@

setup: $(READY) ## make the environment in .venv from requirements.lock

run: $(READY) ## run the main job: many quantiles at once, table and figure into runs/
	$(BIN)/python -m pq.cli run $(MAIN_NOTEBOOK)

test: ## everything that CI runs: lint, types, tests, doctests, proof checks, notebooks
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory types
	@$(MAKE) --no-print-directory unit
	$(BIN)/python -m pytest -n $(WORKERS) proofs_checks
	@$(MAKE) --no-print-directory sweep
	@$(MAKE) --no-print-directory nbval

test-long: $(READY) ## hours: thorough properties, killed ledgers, a million odd inputs, pages under shaking
	HYPOTHESIS_PROFILE=thorough PQ_LONG=1 PQ_DIGITS=all $(BIN)/python -m pytest -n $(WORKERS) -o faulthandler_timeout=0 tests pq pqlab proofs_checks
	PYTHONPATH=.:tests:tests/private $(BIN)/python tests/private/fuzz.py --inputs 1000000
	$(BIN)/python -m pqlab.pages.sweep --workers $(WORKERS)
	@$(MAKE) --no-print-directory digits

lint: $(READY) ## ruff: rules and format; the rings; declared dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/deptry .

types: $(READY) ## mypy on the package
	$(BIN)/mypy

# No new worker in place of one that dies: with groups it would wait for ever for the work of the other (xdist 3.8).
unit: $(READY) ## tests of the software and the doctests
	$(BIN)/python -m pytest -n $(WORKERS) tests pq pqlab --dist loadgroup --max-worker-restart 0

checks: $(READY) ## check the paper's statements one by one and print a report
	$(BIN)/python -m proofs_checks

nbval: $(READY) ## run every notebook and compare each output with the stored one
	$(BIN)/python -m pqlab.pages.notebook check
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --nbval --nbval-current-env notebooks

notebooks: $(READY) ## execute the notebooks anew from their sources and store the outputs
	$(BIN)/python -m pqlab.pages.notebook build $(NOTEBOOKS)

digits: $(READY) ## run every page with last bits moved and under lesser instruction sets
	$(BIN)/python -m pqlab.pages.digits --seed 1 --seed 2 --seed 3 --lesser

sweep: $(READY) ## run pages at corners of what they accept, the smallest of those runs; all of them: test-long
	$(BIN)/python -m pqlab.pages.sweep --smoke --workers $(WORKERS)

book: $(INSTALLED) ## build the book into build/book from the committed pages, nothing is run; EDITION=instructor adds solutions
	$(BIN)/python -m pqlab.pages.book build --edition $(EDITION)

serve-book: ## show the book that was built, to this machine only
	@test -f build/book/index.html || $(MAKE) --no-print-directory book
	$(BIN)/python -m pqlab.pages.book serve --port $(PORT)

lab: $(READY) ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

bench: $(READY) ## time and memory of releases beside np.sort, np.quantile, polars and DuckDB
	$(BIN)/python -m benchmarks.one_release --save results/benchmarks/one_release.csv
	$(BIN)/python -m benchmarks.speeds --save results/benchmarks/machines
	$(BIN)/python -m benchmarks.unsorted --save results/benchmarks/machines
	$(BIN)/python -m benchmarks.where --save results/benchmarks/machines

# Other libraries bring dependencies that this project does not want, so they live apart.
$(PEERS_READY): $(READY) benchmarks/peers/requirements.lock
	$(BIN)/python -m venv --clear $(PEERS)
	@echo "Installing the libraries to compare with into $(PEERS)"
	@$(BIN)/uv pip install --quiet --python $(PEERS)/bin/python --require-hashes -r benchmarks/peers/requirements.lock
	@touch $@

bench-error: $(PEERS_READY) ## error of all mechanisms and peers against what was aimed at; goes on with rows that the table lacks
	PYTHONPATH=. $(PEERS)/bin/python -m benchmarks.least_error --resume --save results/benchmarks/least_error.csv

bench-peers: $(PEERS_READY) ## time and error beside other private libraries, in an environment of their own
	PYTHONPATH=. $(PEERS)/bin/python -m benchmarks.peers --save results/benchmarks/peers.csv

data-check: $(READY) ## rebuild the embedded tables from their packages and compare
	$(BIN)/python -m pq.datasets.rebuild --check

format: $(READY) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(READY) ## derive requirements.lock from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --quiet $(UPGRADE) --all-extras --universal --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml benchmarks/peers/requirements.in --constraint requirements.lock --quiet \
	  --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --output-file benchmarks/peers/requirements.lock

clean: ## remove caches and build outputs; keeps .venv and runs/
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -not -path './$(VENV)/*' -prune -exec rm -rf {} +
	rm -f $(READY) $(INSTALLED)
