# make demo: install and speed up a bundled kernel; make test: install and run the checks; make help: the rest.

PYTHON ?= python3.11
VENV ?= .venv
DEMO ?= configs/demo/kernel.py:attention --set HEADS=12 --set TOKENS=256 --set CHANNELS=64
# Where torch's CPU wheels are found, if pip's own configuration does not say so (see docs/howto/install.md).
TORCH_INDEX_URL ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
TORCH := $(shell sed -n 's/^ *"\(torch~=[^"]*\)".*/\1/p' pyproject.toml)
MKL := $(shell sed -n 's/^ *"\(mkl[>~=][^"]*\)".*/\1/p' pyproject.toml)
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_ALL := $(VENV)/.installed-all

.DEFAULT_GOAL := help
.PHONY: help install demo lint test test-all pytest-quick pytest-all bench docs clean

help:
	@echo 'make demo     install into $(VENV), then speed up a bundled kernel and verify it'
	@echo 'make test     install with the development tools, then ruff, mypy and all tests but the slowest'
	@echo 'make test-all install MKL too, then ruff, mypy and all tests; those of pages want Chromium on the path'
	@echo 'make lint     ruff and mypy alone'
	@echo 'make bench    list the benchmarks; NAME=case-spmm ARGS=--quick runs one'
	@echo 'make docs     build the documentation into build/docs'
	@echo 'make install  install into $(VENV): $(BIN)/gnnperf'
	@echo 'make clean    remove $(VENV) and everything that tools left behind'
	@echo
	@echo 'PYTHON=$(PYTHON)  the Python 3.11 to use'
	@echo 'TORCH_INDEX_URL=  index with CPU wheels of torch, if pip finds only those with CUDA'
	@echo 'CUDA=1            accept torch with CUDA (several GB)'

install: $(INSTALLED)

demo: $(INSTALLED)
	$(BIN)/gnnperf retrieve $(DEMO)

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy

# With --jobs 2 types are checked, by one process, while tests run.
test: lint pytest-quick
test-all: lint pytest-all

pytest-quick: $(INSTALLED_DEV)
	$(BIN)/pytest -n 2 --dist loadfile -m 'not slow'

pytest-all: $(INSTALLED_ALL)
	$(BIN)/pytest -n 2 --dist loadfile

bench: $(INSTALLED)
	$(BIN)/python scripts/benchmarks/run.py $(or $(NAME),--list) $(ARGS)

docs: $(INSTALLED_DEV)
	$(BIN)/sphinx-build -n -W --keep-going -q -d build/doctrees docs build/docs

clean:
	rm -rf $(VENV) build dist *.egg-info .dacecache _dacegraphs .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An editable install: only a change of the dependencies calls for another.
$(INSTALLED): pyproject.toml | $(VENV)/.torch
	$(PIP) install --editable .
	@touch $@

$(INSTALLED_DEV): pyproject.toml | $(VENV)/.torch
	@command -v cmake >/dev/null || { echo "the tests build the C++ client, and there is no cmake:" \
	  "install it (Debian: apt-get install cmake)"; exit 1; }
	$(PIP) install --editable '.[dev]'
	@touch $@ $(INSTALLED)

$(INSTALLED_ALL): $(INSTALLED_DEV)
	$(PIP) install '$(MKL)'
	@touch $@

# torch comes first and alone, so that nothing else decides which build of it is taken.
$(VENV)/.torch:
	@command -v $(PYTHON) >/dev/null || { echo "gnnperf needs Python 3.11, and there is no $(PYTHON): install it" \
	  "(Debian: apt-get install python3.11 python3.11-venv) or name it: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments:" \
	  "install the rest of it (Debian: apt-get install python3.11-venv)"; exit 1; }
	@command -v g++ >/dev/null || { echo "gnnperf compiles kernels, and there is no g++:" \
	  "install it (Debian: apt-get install g++)"; exit 1; }
	@echo "installing into $(VENV), which takes a minute or two"
	$(PYTHON) -m venv $(VENV)
ifdef TORCH_INDEX_URL
	$(PIP) install --index-url $(TORCH_INDEX_URL) '$(TORCH)'
else ifndef CUDA
	@if $(PIP) install --dry-run --report - '$(TORCH)' | grep '"nvidia-' >/dev/null; then \
	  echo "pip finds torch only with CUDA (several GB). Name an index of CPU wheels (the PyTorch site has it):" \
	    "make TORCH_INDEX_URL=...; or accept CUDA: make CUDA=1"; exit 1; fi
	$(PIP) install '$(TORCH)'
endif
	@touch $@
