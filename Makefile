# make quickstart   a virtual environment, the package, and a first run
# make test         the same environment with the test extra, then lint, types and the test suite
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SOURCES := setup.py setup.cfg pyproject.toml $(wildcard cython_ext/*/*.pyx cython_ext/*/*.pxd cython_ext/*/*.h)

.PHONY: quickstart test lint types debug-test docs clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(VENV)/.installed-test: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install -q -e '.[test]'
	@touch $@ $(VENV)/.installed

quickstart: $(VENV)/.installed
	$(BIN)/edgewatt run configs/examples/quickstart.yaml

test: $(VENV)/.installed-test lint types
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

# The kernels once more with bounds checks on, in a folder of their own.
debug-test: $(VENV)/.installed-test
	rm -rf build/debug && mkdir -p build/debug
	EDGEWATT_DEBUG=1 $(BIN)/python setup.py -q build_ext --build-lib build/debug --build-temp build/debug-objects
	for p in edgewatt reorder hwmodel traces; do cp -r $$p build/debug/; done
	cp -r configs build/debug/configs && cp --parents cython_ext/__init__.py cython_ext/*/__init__.py build/debug/
	PYTHONPATH=build/debug $(BIN)/python -P -m pytest -n auto --dist worksteal tests/unit tests/property tests/conformance

docs: $(VENV)/.installed-test
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

clean:
	rm -rf build dist docs/_build *.egg-info cython_ext/*/*.so cython_ext/*/*.c cython_ext/*/*.cpp cython_ext/*/*.html
