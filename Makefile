# Everything runs in .venv, which the first command creates. Needs Python 3.11 or newer and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: demo test test-all check docs bench clean

demo: $(STAMP)  ## train on the embedded graph, certify its test nodes, write a report
	@$(BIN)/graycert certify --graph wordnet_nouns --model gcn --learning-rate 0.01 --max-epochs 200 \
		--n0 200 --n1 1000 --out runs/demo --overwrite

test: $(STAMP)  ## the default tests: CPU, offline
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: $(STAMP)  ## every test, minutes
	$(BIN)/python -m pytest -q -n 2

check: $(STAMP)  ## format, lint, types, import contract
	BIN=$(BIN) scripts/check

docs: $(VENV)/installed-docs  ## the documentation, as HTML in docs/_build
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, one to three minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "torch>=2.6,<2.14"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/installed-docs: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	@touch $@

bench: $(STAMP)  ## speed against the plain versions, as ratios; reads Cora-ML from GRAYCERT_DATA
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/sampling.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bounds.py

clean:
	rm -rf $(VENV) docs/_build .mypy_cache .ruff_cache .pytest_cache
