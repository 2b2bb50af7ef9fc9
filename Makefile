# make quickstart   a virtual environment, the package, and a first run
# make test         the same environment with the test extra, then lint, types and the tests of before each commit
# make test-all     also commands, pages, hostile files, and kernels with bounds checks
SHELL := bash
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Tests wait for child processes and browsers a quarter of their time: one worker more than cores.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# They fill the cores: threads of BLAS beside them wait for each other (the quick tests take an eighth longer).
export OPENBLAS_NUM_THREADS ?= 1
SOURCES := setup.py setup.cfg pyproject.toml $(wildcard cython_ext/*/*.pyx cython_ext/*/*.pxd cython_ext/*/*.h cython_ext/*/*/*.h)

# What stands beside the kernels in a copy: members of other distributions compile against the headers.
SHIPPED := cython_ext/__init__.py $(wildcard cython_ext/*/__init__.py cython_ext/*/*.h cython_ext/*/*/*.h)

.PHONY: quickstart test test-all explore lint types debug-test sanitize docs warnings dist clean

# The lines of pip that say what comes.
pip = set -o pipefail; $(BIN)/python -m pip install --no-compile --disable-pip-version-check --progress-bar off $(1) \
	| { grep --line-buffered -E '^(Collecting|Installing collected|Successfully)' || true; }

$(BIN)/python:
	@echo "environment: $(VENV), with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	@echo "packages that kernels are built with"
	@$(call pip,'setuptools>=77' 'cython>=3.1' 'numpy>=2.0')
	@touch $@

$(VENV)/.kernels: $(SOURCES) | $(VENV)/.tools
	@$(BIN)/python setup.py -q build_ext --inplace
	@touch $@

$(VENV)/.installed: setup.cfg pyproject.toml | $(VENV)/.kernels
	@echo "packages that edgewatt needs"
	@$(call pip,--no-build-isolation -e .)
	@touch $@

$(VENV)/.installed-test: setup.cfg pyproject.toml | $(VENV)/.kernels
	@echo "packages that tests, linters and pages need"
	@$(call pip,--no-build-isolation -e '.[test]')
	@touch $@ $(VENV)/.installed

# What the README's first commands need, no more: any other command says which extra it lacks.
quickstart:
	@echo "edgewatt: an environment, packages, kernels, a first run; one to two minutes on two cores, later seconds"
	@$(MAKE) --no-print-directory $(VENV)/.installed
	$(BIN)/edgewatt run configs/examples/quickstart.yaml
	@echo "next:  . $(BIN)/activate   and then   edgewatt --help"

test: $(VENV)/.installed-test lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not application"

test-all: test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m application
	$(MAKE) --no-print-directory debug-test

# Property tests on examples no run has seen: `make test` takes the same ones every time.
explore: $(VENV)/.installed-test
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/property

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

# The kernels once more with bounds checks on, in a folder of their own; tests of commands, pages and files are left out.
debug-test: $(VENV)/.installed-test
	rm -rf build/debug && mkdir -p build/debug
	EDGEWATT_DEBUG=1 $(BIN)/python setup.py -q build_ext --build-lib build/debug --build-temp build/debug-objects
	for p in edgewatt reorder hwmodel traces; do cp -r $$p build/debug/; done
	cp -r configs build/debug/configs && cp --parents $(SHIPPED) build/debug/
	PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/debug $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not application" tests/unit tests/property tests/conformance

# The kernels under AddressSanitizer and UndefinedBehaviorSanitizer; what runs in threads under ThreadSanitizer.
# The interpreter is not instrumented: the runtime is loaded before it, and its leaks are not ours to find.
# Inference runs kernels in threads of its own, any other may be called from several; no suppressions are needed.
# Tests fork while threads run, which ThreadSanitizer ends by default (die_after_fork).
# Bindings of peers that tests compare with (libcachesim) free what `new` gave: that check is off, ours take malloc alone.
SANITIZED := tests/unit tests/property tests/conformance
THREADED  := $(wildcard tests/*/test_inference*.py tests/*/test_threads.py)

sanitize: $(VENV)/.installed-test
	$(call sanitized,address$(comma)undefined,asan,$(SANITIZED))
	$(call sanitized,thread,tsan,$(THREADED))

comma := ,
# (sanitizers, runtime, tests): build into a folder of its own and run the tests there
define sanitized
	rm -rf build/$(2) && mkdir -p build/$(2)
	EDGEWATT_SANITIZE=$(1) $(BIN)/python setup.py -q build_ext --build-lib build/$(2) --build-temp build/$(2)-objects
	for p in edgewatt reorder hwmodel traces; do cp -r $$p build/$(2)/; done
	cp -r configs build/$(2)/configs && cp --parents $(SHIPPED) build/$(2)/
	LD_PRELOAD=$$(gcc -print-file-name=lib$(2).so):$$(gcc -print-file-name=libstdc++.so.6) \
	ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:allocator_may_return_null=1:alloc_dealloc_mismatch=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 \
	PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/$(2) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(3)
endef

docs: $(VENV)/.installed-test
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html

# The kernels with both compilers, into folders of their own: a warning is an error.
warnings: $(VENV)/.installed-test
	for compiler in gcc clang; do \
	CC=$$compiler CFLAGS="-Wall -Werror" $(BIN)/python setup.py -q build_ext --build-lib build/$$compiler --build-temp build/$$compiler-objects || exit 1; done

# A source distribution and a wheel for this machine, checked; then the source distribution alone, in an empty environment.
dist: $(VENV)/.installed-test
	rm -rf dist build/empty
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install -q "$$(echo dist/edgewatt-*.tar.gz)"
	cd build/empty && bin/edgewatt doctor && bin/edgewatt run quickstart -o results

clean:
	rm -rf build dist docs/_build *.egg-info cython_ext/*/*.so cython_ext/*/*.c cython_ext/*/*.cpp cython_ext/*/*.html
