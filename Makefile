# Each target sets up what it needs on first use and starts at once from then on.
PYTHON ?= python3
BIN := .venv/bin
# Such as LAB_OPTIONS="--no-browser --port=9000".
LAB_OPTIONS ?=

.PHONY: help lab test grade release book results bench
.DEFAULT_GOAL := help

help:
	@echo "make lab      open the course in JupyterLab"
	@echo "make test     run all tests"
	@echo "make grade    grade an example class and print the marks"
	@echo "make release  generate notebooks/ from solutions/"
	@echo "make book     build the web book: book/_build/html/index.html"
	@echo "make results  train on the full data and write RESULTS.md: hours"
	@echo "make bench    measure the grading engine against plain nbgrader"

# requirements.lock holds the versions of everything that the pinned packages need in turn.
.venv/ready: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	@echo "Setting up .venv: a few minutes, once"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev]'
	@touch $@

lab: .venv/ready
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks/00_start_here/start_here.ipynb $(LAB_OPTIONS)

test: .venv/ready
	@.ci/system-package bubblewrap bwrap
	@.ci/system-package chromium chromium
	@.ci/system-package postgresql pg_ctlcluster
	$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup

grade: .venv/ready
	@.ci/system-package bubblewrap bwrap
	$(BIN)/autograder example-class

release: .venv/ready
	$(BIN)/autograder release

book: .venv/ready
	$(BIN)/python book/build.py

results: .venv/ready
	$(BIN)/python data/download.py
	$(BIN)/python results/imdb.py
	$(BIN)/python results/imdb_cost.py
	$(BIN)/python results/multi30k.py
	$(BIN)/python results/report.py

bench: .venv/ready
	@.ci/system-package bubblewrap bwrap
	$(BIN)/python benchmarks/throughput.py
