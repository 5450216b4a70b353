# Each target prepares .venv itself, with the wheel built from this checkout: see tools/environment.py.
# CULAUNCH_REQUIRE=torch (a list with commas) makes tests fail, not skip, where torch is missing.

PYTHON ?= python3
BIN := $(CURDIR)/.venv/bin
JOBS ?= 2
TESTS ?= tests
# SEED=7 shuffles the files of tests, each time the same way: no file may need another before it.
ORDER = $(if $(SEED),--random-order-bucket=module --random-order-seed=$(SEED))

.PHONY: help demo check test graphs newest pythons suites sanitize lint docs clean
.SILENT:

help:
	echo "make demo   compile, inspect and launch two kernels"
	echo "make check  the quick loop: lint, and the tests that are not slow"
	echo "make test   run the tests on the installed wheel"
	echo "make graphs run the tests of launching with every launch as a graph, from the first call"
	echo "make newest run a quick part of the tests with the newest PyTorch and Triton"
	echo "make pythons  run a quick part of the tests with Python 3.10 and 3.13"
	echo "make suites run the third-party tests that the emulator supports, for half an hour"
	echo "make sanitize  run tests of the extension under AddressSanitizer and UBSan"
	echo "make lint   ruff, mypy --strict, import-linter, clang-format, words, prose"
	echo "make docs   build the documentation in docs/_build"
	echo "make clean  remove everything that these targets made"

demo:
	$(PYTHON) tools/environment.py cli compile emulator
	$(BIN)/culaunch demo

# From a folder of its own, where only the installed wheel can be imported. Bytecode stays in the
# build folder, also where Python is told to write none: pytest would rewrite the asserts of every
# file in each worker, and each process that a test starts compile the whole package.
export PYTHONPYCACHEPREFIX = $(CURDIR)/build/bytecode
export PYTHONDONTWRITEBYTECODE =
# A worker takes tests in their order, and of the other's when it has done its own: what a file
# prepares is prepared once.
PYTEST = mkdir -p build/tests && cd build/tests && CULAUNCH_TEST_INSTALLED=1 PATH="$(BIN):$$PATH" \
	$(BIN)/pytest -c $(CURDIR)/pyproject.toml --rootdir $(CURDIR) -n $(JOBS) --dist worksteal $(ORDER) $(abspath $(TESTS))

# KEEP=1 keeps the caches from one run of `make test` to the next, as `make check` does. A test that
# is about a cache has its own.
KEPT_CACHES = export CULAUNCH_CACHE_DIR="$(CURDIR)/build/cache" TRITON_CACHE_DIR="$(CURDIR)/build/triton";

# The quick loop. C++ is looked at where it differs from what will be merged into, which is the
# last commit where no other branch is known.
BASE = $(shell git merge-base HEAD origin/HEAD 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)
# Without a GPU a thousand tests need not be looked at to skip them.
QUICK = not slow and not takes_long$(if $(wildcard /dev/nvidia[0-9]* /dev/dxg),, and not gpu and not multi_gpu)
SOURCES = '*.h' '*.hpp' '*.c' '*.cpp' '*.cuh'

check:
	$(PYTHON) tools/environment.py dev --for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --cache-dir build/import_linter >build/layers.txt || ! cat build/layers.txt
	{ git diff -z --name-only --diff-filter=d $(BASE) -- $(SOURCES); git ls-files -zo --exclude-standard -- $(SOURCES); } | \
		xargs -0r $(BIN)/clang-format --dry-run -Werror
	$(KEPT_CACHES) $(PYTEST) -q -r fE -m "$(QUICK)"

test:
	$(PYTHON) tools/environment.py test --for-tests
	$(if $(KEEP),$(KEPT_CACHES)) $(PYTEST)

# The same results, with graphs forced on: `CULAUNCH_GRAPHS=0 make graphs` is the other half.
graphs: export CULAUNCH_GRAPHS ?= 1
graphs: TESTS = tests/launch tests/function tests/triton tests/torch_operators
graphs: test

# With environments of their own, in build/: see tools/other_versions.py.
newest:
	$(PYTHON) tools/other_versions.py newest

pythons:
	$(PYTHON) tools/other_versions.py pythons

# Of Liger's and fla's own checks `make test` runs a sample: docs/dev/third_party.md.
suites: export CULAUNCH_WHOLE_SUITES = 1
suites: TESTS = tests/triton/installed/test_suite_of_liger.py tests/triton/installed/test_suite_of_fla.py tests/test_third_party_suites.py tests/elementwise/reductions/test_opinfo.py
suites: test

# The extension is built once more, in build/sanitize: see tools/sanitize.py.
sanitize:
	$(PYTHON) tools/environment.py test --for-tests
	PATH="$(BIN):$$PATH" $(BIN)/python tools/sanitize.py

lint:
	$(PYTHON) tools/environment.py dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --cache-dir build/import_linter
	git ls-files -z -- $(SOURCES) | xargs -0 $(BIN)/clang-format --dry-run -Werror
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_prose.py

docs:
	$(PYTHON) tools/environment.py docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build
	echo "docs/_build/index.html"

clean:
	rm -rf .venv build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache
