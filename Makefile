# Each target sets up what it needs on first use (environment/set_up.py) and starts at once from then on.
PYTHON ?= python3
# CUDA=1 takes torch with CUDA, for a graphics card; CUDA=0 goes back.
CUDA ?=
# Such as LAB_OPTIONS="--no-browser --port=9000".
LAB_OPTIONS ?=
BIN := .venv/bin
# How JupyterLab starts: no news, nothing about updates, no tools for writing and fetching assignments, patient threads.
QUIET := $(CURDIR)/environment/jupyter
# The first chapter that is here: notebooks/NN_name/name.ipynb.
FIRST := $(firstword $(foreach file,$(sort $(wildcard notebooks/*/*.ipynb)),\
	$(if $(findstring _$(basename $(notdir $(file)))/,$(file)),$(file))))

.PHONY: help lab
.DEFAULT_GOAL := help

help::
	@echo "make lab            open the course in JupyterLab"

define check_python
import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 15) else
"Python 3.11 to 3.14 is needed, and $(PYTHON) is %d.%d.%d: name another, such as: make PYTHON=python3.12 $@" % v[:3])
endef
export check_python

# $(call set_up,PARTS): what is needed beside the course.
define set_up
@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON): install Python 3.11 to 3.14, or name it: make PYTHON=... $@"; exit 1; }
@$(PYTHON) -c "$$check_python"
@$(PYTHON) environment/set_up.py $(1) --target $@ $(if $(filter-out file,$(origin PYTHON)),--this-python) \
	$(if $(CUDA),--torch $(if $(filter 0,$(CUDA)),cpu,cuda))
endef

lab:
	$(call set_up)
	@VIRTUAL_ENV="$(CURDIR)/.venv" PATH="$(CURDIR)/$(BIN):$$PATH" \
		JUPYTER_CONFIG_PATH="$(QUIET)$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" jupyter lab \
		--ServerApp.terminado_settings="shell_command='$(CURDIR)/environment/terminal'" \
		--LabApp.default_url=/lab$(FIRST:%=/tree/%) $(LAB_OPTIONS)

# What only the whole repository has: tests, the grader's side, the book.
-include maintain.mk
