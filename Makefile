# Each target does its own set-up: a virtual environment in .venv with the pinned versions.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PEERS := .venv/.peers
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
export NUMBA_CACHE_DIR ?= $(CURDIR)/.venv/numba-cache

.PHONY: demo test test-all browser check bench mutants coverage-spec format clean

demo: $(STAMP)            ## surefit fit on a bundled table: a model, a certificate and a report in demo-surefit/
	$(BIN)/surefit fit --out demo-surefit
	$(BIN)/surefit verify demo-surefit/model.surefit bundled:mortgages --quick

test: $(STAMP) browser    ## the whole suite, docs examples included
	$(BIN)/python -m pytest -q -m "not slow"

test-all: $(STAMP) browser  ## the suite and the slow extras (scikit-learn's own test modules on our classes)
	$(BIN)/python -m pytest -q

browser:                  ## Chromium for the tests of the report, where Debian's packages can be installed
	@command -v chromium >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	     && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
	|| echo "browser: no Chromium, and it cannot be installed here: the tests in tests/browser will be skipped"

check: $(STAMP)           ## lint, formatting, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(PEERS)           ## everything in docs/benchmarks.md, measured again; ARGS="ols --quick" for a part
	$(BIN)/python -m benchmarks $(ARGS)

mutants: $(STAMP)         ## small faults planted one at a time: how many do the tests notice? ARGS="--area duality"
	$(BIN)/python -m tests.mutants $(ARGS)

coverage-spec: $(STAMP)   ## which items of the specification have a passing test; writes docs/spec-coverage.md
	$(BIN)/python -m tests.spec_coverage

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install -c constraints.txt -e ".[dev,torch]"
	touch $@

$(PEERS): $(STAMP)
	$(PIP) install -c constraints.txt -e ".[bench]"
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info
