# The targets of those who maintain the course or teach with it; the students' copy does without.
.PHONY: lint format test test-all test-fast test-set-up execute figures grade release book results bench lock

help::
	@echo "make test           run all tests"
	@echo "make test-all       run all tests, on every answer in the grader and every caption in the page"
	@echo "make test-fast      run what a change of prose needs; CHAPTER=06: and that chapter's checks"
	@echo "make test-set-up    set everything up as an ordinary user, from an empty folder"
	@echo "make lint           run the linters and the type checker alone; make format: let them mend what they can"
	@echo "make execute        run a chapter of solutions/ on the sample and keep its results: CHAPTER=06"
	@echo "make grade          grade an example class and print the marks"
	@echo "make release        generate notebooks/ from solutions/"
	@echo "make book           build the web book: book/_build/html/index.html"
	@echo "make figures        see the live figures of all chapters in a browser"
	@echo "make results        train on the full data and write RESULTS.md: hours"
	@echo "make bench          measure the grading engine against plain nbgrader"
	@echo "make lock           resolve the pins in pyproject.toml anew"

# What formats and lints live/*.js; npm keeps it, so that the second time no network is needed.
BIOME := npx --yes --prefer-offline --loglevel=error @biomejs/biome@2.6.8

define lint
$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
@if ! command -v npx >/dev/null; then echo "Skipped: nothing looks at live/*.js, since there is no npm"; \
elif ! $(BIOME) --version >/dev/null 2>&1; then echo "Skipped: nothing looks at live/*.js, since npm cannot fetch Biome"; \
else $(BIOME) ci --error-on-warnings --colors=off; fi
$(BIN)/mypy --no-error-summary
endef

lint:
	$(call set_up,test)
	$(lint)

format:
	$(call set_up,test)
	$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .
	$(BIOME) check --write

test:
	$(call set_up,book test)
	$(lint)
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup -rs --durations 30 $(EVERYTHING)

# Of much that is alike `make test` takes a part; this is for a release, or a change of the engine.
test-all: EVERYTHING := --everything
test-all: test

# What a change of prose needs, in about a minute; with CHAPTER=06 also what a change of that chapter's checks does.
FAST := notebooks claims release images card pins plumbing
test-fast:
	$(call set_up,test)
	$(lint)
	$(BIN)/python -m pytest --numprocesses auto $(FAST:%=tests/test_%.py)
	$(if $(CHAPTER),$(BIN)/autograder mutants $(CHAPTER))
	$(if $(CHAPTER),$(BIN)/python -m pytest --numprocesses auto --everything tests/engine/test_honest.py -k "[$(CHAPTER)-")

# Minutes and gigabytes for each, such as PYTHONS="/usr/bin/python3 /opt/python3.14/bin/python3".
PYTHONS ?= $(PYTHON)
test-set-up:
	$(call set_up,book test)
	SET_UP_PYTHONS="$(PYTHONS)" $(BIN)/python -m pytest tests/test_set_up.py -rP

execute:
	$(if $(CHAPTER),,@echo "Which chapter? Such as: make execute CHAPTER=06"; exit 1)
	$(call set_up)
	@$(BIN)/python solutions/execute.py $(CHAPTER)

grade:
	$(call set_up)
	$(BIN)/autograder example-class

release:
	$(call set_up)
	$(BIN)/autograder release

book:
	$(call set_up,book)
	$(BIN)/python book/build.py

figures:
	$(call set_up,book)
	@$(BIN)/python book/gallery.py

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
	$(BIN)/python results/beams.py --told
	$(BIN)/python results/beams.py --drawn
	$(BIN)/python results/caption_models.py
	$(BIN)/python results/caption_models.py --epochs 1
	$(BIN)/python results/caption_models.py --epochs 5
	$(BIN)/python results/caption_models.py --epochs 5 --captions 29000 --models modern relu
	$(BIN)/python results/caption_models.py --pieces
	$(BIN)/python results/caption_models.py --compare
	$(BIN)/python results/induction.py
	$(BIN)/python results/induction.py --one-layer
	$(BIN)/python results/induction.py --apart
	$(BIN)/python results/reading.py --body solutions/12_pretraining/body.pt
	$(BIN)/python results/reading.py --longer --body results/bodies/longer.pt --ways full frozen --labels 25000
	$(BIN)/python results/reading.py --compare --together
	$(BIN)/python results/reading.py --longer --compare --together --labels 25000
	$(BIN)/python results/self_training.py
	$(BIN)/python results/controls.py
	$(BIN)/python results/contamination.py
	$(BIN)/python results/report.py

bench:
	$(call set_up)
	$(BIN)/python benchmarks/throughput.py

# Beforehand: change a pin in pyproject.toml.
lock:
	$(call set_up,book test)
	$(BIN)/python environment/lock.py $(if $(UPGRADE),--upgrade)
