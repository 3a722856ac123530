# The targets of those who maintain the course or teach with it; the students' copy does without.
.PHONY: test test-all test-fast test-set-up grade release book results bench lock

help::
	@echo "make test           run all tests"
	@echo "make test-all       run all tests, on every answer in the grader and every caption in the page"
	@echo "make test-fast      run what a change of prose needs; CHAPTER=06: and that chapter's checks"
	@echo "make test-set-up    set everything up as an ordinary user, from an empty folder"
	@echo "make grade          grade an example class and print the marks"
	@echo "make release        generate notebooks/ from solutions/"
	@echo "make book           build the web book: book/_build/html/index.html"
	@echo "make results        train on the full data and write RESULTS.md: hours"
	@echo "make bench          measure the grading engine against plain nbgrader"
	@echo "make lock           resolve the pins in pyproject.toml anew"

test:
	$(call set_up,book test)
	$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup -rs $(EVERYTHING)

# Of much that is alike `make test` takes a part; this is for a release, or a change of the engine.
test-all: EVERYTHING := --everything
test-all: test

# What a change of prose needs, in about a minute; with CHAPTER=06 also what a change of that chapter's checks does.
FAST := notebooks claims release images card pins plumbing
test-fast:
	$(call set_up,test)
	$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	$(BIN)/python -m pytest --numprocesses auto $(FAST:%=tests/test_%.py)
	$(if $(CHAPTER),$(BIN)/autograder mutants $(CHAPTER))

# Minutes and gigabytes for each, such as PYTHONS="/usr/bin/python3 /opt/python3.14/bin/python3".
PYTHONS ?= $(PYTHON)
test-set-up:
	$(call set_up,book test)
	SET_UP_PYTHONS="$(PYTHONS)" $(BIN)/python -m pytest tests/test_set_up.py -rP

grade:
	$(call set_up)
	$(BIN)/autograder example-class

release:
	$(call set_up)
	$(BIN)/autograder release

book:
	$(call set_up,book)
	$(BIN)/python book/build.py

results:
	$(call set_up)
	$(BIN)/python data/download.py
	$(BIN)/python results/ngrams.py
	$(BIN)/python results/imdb.py
	$(BIN)/python results/imdb.py --compare
	$(BIN)/python results/imdb.py --ablate
	$(BIN)/python results/imdb.py --splits
	$(BIN)/python results/imdb_cost.py
	$(BIN)/python results/multi30k.py
	$(BIN)/python results/multi30k.py --compare
	$(BIN)/python results/beams.py
	$(BIN)/python results/caption_models.py
	$(BIN)/python results/report.py

bench:
	$(call set_up)
	$(BIN)/python benchmarks/throughput.py

# Beforehand: change a pin in pyproject.toml.
lock:
	$(call set_up,book test)
	$(BIN)/python environment/lock.py $(if $(UPGRADE),--upgrade)
