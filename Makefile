# Everything runs in .venv, which the first command creates. Needs Python 3.11 or newer and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: demo test test-deep test-processes test-browser test-random test-all check docs bench bench-quick bench-large bench-targets bench-tighter clean

demo: $(STAMP)  ## certify a smoothed GNN, and at the same time votes of single nodes, on the embedded graph; write their reports
	@mkdir -p runs; export OMP_NUM_THREADS=1; \
	$(BIN)/graycert certify --graph wordnet_nouns --model gcn --learning-rate 0.01 --max-epochs 200 \
		--bound multiplicative --n0 200 --n1 1000 --out runs/demo --overwrite --brief & smoothed=$$!; \
	trap 'kill $$smoothed' INT TERM; \
	$(BIN)/graycert certify --graph wordnet_nouns --smoothing votes --min-distance 1 --max-epochs 60 \
		--out runs/demo-votes --overwrite --brief > runs/demo-votes.txt 2>&1; votes=$$?; \
	wait $$smoothed && cat runs/demo-votes.txt && exit $$votes

test: $(STAMP)  ## the default tests: every room, CPU, offline, minutes
	$(BIN)/python -m pytest -q -n 2 -m "not deep and not slow and not processes and not browser"

test-deep: $(STAMP)  ## more of the same, and what takes seconds
	$(BIN)/python -m pytest -q -n 2 -m "deep and not slow and not processes and not browser"

test-processes: $(STAMP)  ## experiments and sweeps in several processes, some of them killed
	$(BIN)/python -m pytest -q -m processes

test-browser: $(STAMP)  ## report.html in the system's Chromium, without a network; skipped where there is none
	$(BIN)/python -m pytest -q -m browser tests/browser

test-random: $(STAMP)  ## the property tests on new random examples
	$(BIN)/python -m pytest -q -n 2 --hypothesis-profile random -m hypothesis

test-all: $(STAMP)  ## every test, minutes
	$(BIN)/python -m pytest -q -n 2

check: $(STAMP)  ## format, lint, types, import contract
	BIN=$(BIN) scripts/check

docs: $(VENV)/installed-docs  ## the documentation, as HTML in docs/_build, readable without a network: runs the tutorials, minutes
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python scripts/check_offline.py docs/_build/html

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, one to three minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "torch>=2.6,<2.14"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/installed-docs: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	@touch $@

RESULTS := benchmarks/results
MEASURE = OMP_WAIT_POLICY=PASSIVE OMP_NUM_THREADS=1 $(BIN)/python benchmarks
bench: PAGE := docs/performance.md
bench-quick: ROUNDS := --rounds 1
bench-quick: QUICK := --quick
bench-quick: PAGE := $(RESULTS)/performance.md

bench bench-quick: $(STAMP)  ## speed against the plain versions, and growth: writes docs/performance.md, minutes; needs a quiet machine and GRAYCERT_DATA
	@mkdir -p $(RESULTS)
	$(MEASURE)/machine.py --json $(RESULTS)/machine.json
	$(MEASURE)/sampling.py $(QUICK) --json $(RESULTS)/sampling.json
	$(MEASURE)/certify.py $(ROUNDS) --json $(RESULTS)/certify.json
	$(MEASURE)/foreign_models.py $(ROUNDS) --draws 64 --json $(RESULTS)/foreign_models.json
	$(MEASURE)/training.py $(or $(ROUNDS),--rounds 3) --json $(RESULTS)/training.json
	$(MEASURE)/bounds.py $(QUICK) --json $(RESULTS)/bounds.json
	$(MEASURE)/arrivals.py $(or $(ROUNDS),--rounds 3) --json $(RESULTS)/arrivals.json
	$(MEASURE)/cold_start.py $(ROUNDS) --json $(RESULTS)/cold_start.json
	$(MEASURE)/growth.py $(QUICK) --json $(RESULTS)/growth.json
	$(BIN)/python benchmarks/page.py --results $(RESULTS) --out $(PAGE)

bench-large: $(STAMP)  ## every node of the large WordNet graph, for the page of `make bench`; growth up to ten million edges, for docs/scale.md: an hour
	@mkdir -p $(RESULTS)
	$(MEASURE)/growth.py --large --json $(RESULTS)/large.json
	$(MEASURE)/scale.py --json $(RESULTS)/scale.json

bench-targets: $(STAMP)  ## time of a draw against the number of targets, up to all nodes of large graphs with hubs: an hour
	@mkdir -p $(RESULTS)
	$(MEASURE)/targets.py --json $(RESULTS)/targets.json

bench-tighter: $(STAMP)  ## bounds, rules and derandomization against the paper's: the numbers of docs/tighter.md; needs GRAYCERT_DATA
	@mkdir -p $(RESULTS)
	$(MEASURE)/exact_bounds.py --json $(RESULTS)/exact_bounds_2.json
	$(MEASURE)/exact_bounds.py --layers 3 --json $(RESULTS)/exact_bounds_3.json
	$(MEASURE)/exact_bounds.py --graph citeseer --json $(RESULTS)/exact_bounds_citeseer_2.json
	$(MEASURE)/exact_bounds.py --graph citeseer --layers 3 --json $(RESULTS)/exact_bounds_citeseer_3.json
	$(MEASURE)/rules.py --json $(RESULTS)/rules_authors.json
	$(MEASURE)/rules.py --graph citeseer --json $(RESULTS)/rules_citeseer.json
	$(MEASURE)/derandomization.py --json $(RESULTS)/derandomization.json

clean:
	rm -rf $(VENV) docs/_build .mypy_cache .ruff_cache .pytest_cache
