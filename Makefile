# make demo   set up, check a job before it runs, diagnose real failing jobs
# make test   set up, check style and types, run all tests
# make quick  check style, run the tests that need no torch, database or browser
# make test-slurm  run the tests that need a Slurm: as root, with Debian's slurm-wlm and munge
# make bench  measure everything that the README claims
# make gpu    measure on a GPU what only a GPU can show, in ten minutes; uses GPU_PYTHON=... or any Python that has
#             torch for CUDA, else installs torch; GPU_OPTIONS=--stand-in runs the parts on the CPU
# make docs   regenerate the pages of signatures, rules and figures
# make site   build the documentation site into build/site and check its links

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
# A file's tests share fixtures and what a module prepares, so one process runs a file.
# Two more than cores, since many tests wait for processes. Fewer of the quick ones wait, and each process
# imports all test files.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(shell echo $$(($(CORES) + 2)))
QUICK_WORKERS ?= $(shell echo $$(($(CORES) + 1)))
PYTEST := $(BIN)/pytest --dist loadfile --no-loadscope-reorder --numprocesses

.PHONY: demo test test-slurm quick suite style types lint bench gpu docs site clean

demo: $(VENV)/core
	@$(BIN)/python docs/demo.py

# Checking types takes one core half a minute, in which some tests only wait.
test: $(VENV)/dev style
	@$(MAKE) --no-print-directory --jobs=2 types suite

quick: $(VENV)/dev style
	$(PYTEST) $(QUICK_WORKERS) --quick

test-slurm: $(VENV)/dev
	tests/slurm/run.sh $(BIN)/python

lint: style types

suite: $(VENV)/collected
	$(PYTEST) $(WORKERS)

style: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev
	$(BIN)/mypy

bench: $(VENV)/bench
	$(BIN)/python bench/run.py

# Standard library only: a machine with a GPU may have no network.
GPU_OUT ?= gpu-results
gpu:
	@$(PYTHON) bench/gpu/install.py $(VENV)/gpu --out $(GPU_OUT) $(GPU_OPTIONS)

docs: $(VENV)/core
	$(BIN)/python docs/catalog.py
	$(BIN)/python docs/rules.py
	$(BIN)/python bench/figures.py

# The reference contains the help of all commands, which import what their extras install.
site: $(VENV)/dev
	rm -rf build/site
	$(BIN)/sphinx-build -q -W --keep-going docs build/site
	$(BIN)/python docs/links.py build/site

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

# An old pip, which Python 3.11 brings, takes twice the time to install the packages of the tests.
$(VENV)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=25.1'
	@touch $@

# Each of these marks an installed set of packages; pyproject.toml says what is in it. Most dependencies of the
# tests of models are heavy, and no demonstration uses them.
$(VENV)/core: $(VENV)/python pyproject.toml models/pyproject.toml
	$(PIP) --editable '.[store]'
	$(PIP) --no-deps --editable models
	@touch $@

# pip would compile seven million lines on one core, most of which no test imports: Python compiles a module
# when it is imported first. torch is compiled here, since what cannot write next to it imports it too.
$(VENV)/dev: $(VENV)/python pyproject.toml models/pyproject.toml
	$(PIP) --no-compile --editable '.[dev]' --editable 'models[onnx]'
	@$(BIN)/python -m compileall -q -j 0 -x /testing/ $(VENV)/lib/python*/site-packages/torch
	@touch $@ $(VENV)/core

# Compiles the tests and all that they import once, while types are checked. Otherwise each process of the
# first run compiles all of it.
$(VENV)/collected: $(VENV)/dev
	@$(BIN)/pytest --collect-only -q > $@ || { cat $@; rm $@; exit 1; }

$(VENV)/bench: $(VENV)/python pyproject.toml models/pyproject.toml
	$(PIP) --editable '.[dev,bench]' --editable 'models[onnx]'
	@touch $@ $(VENV)/core $(VENV)/dev
