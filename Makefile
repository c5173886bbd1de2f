# make demo    everything from nothing: install, build, train, resume, restore
# make demo-serving  a model served, asked, trained on, swapped: no request is lost
# make test    the same, then every test of C++ and Python
# make smoke   the tests that take under a minute
# make bench   the benchmarks        make wheel   dist/headrace-*.whl
# make serving-wheel   dist/headrace_serving-*.whl, the model server and gRPC, on top of it
# make image   dist/image/, what a container image of the model server holds
# make c-package   the C library as bindings expect it: dist/libtensorflow-*.tar.gz
# make format  rewrite sources       make lint    what .ci/run checks of them
# make asan, tsan, fuzz              the sanitizers and fuzzers
# make fuzz-ops                      raw ops for FUZZ_SECONDS
# make soak                          hours: TensorFlow's own tests, long fuzzing
# make docs                          dist/reference/, the reference of Python and C++
# PYTHON=python3.12 chooses the interpreter of .venv and of the wheel, JOBS=4 the
# parallelism, TRY_PYTHONS="python3.12 python3.13" what the wheel is tried with.
JOBS ?= $(shell nproc)
PYTEST_ARGS ?= -q -n $(JOBS)
FUZZ_SECONDS ?= 60
PY := .venv/bin/python
export PYTHON

.PHONY: build demo demo-serving test test-cc test-python smoke bench docs wheel serving-wheel image c-package asan tsan fuzz \
        soak test-cluster soak-cluster upstream-turn asan-python format lint lint-format lint-locks clean bootstrap build-asan \
        build-tsan build-asan-python build-fuzz fuzz-ops configured
.DEFAULT_GOAL := build

bootstrap:
	@bash tools/bootstrap.sh build

# Ninja runs CMake again by itself when a list or the set of files changes.
configured: bootstrap
	@test -f build/build.ninja || cmake --preset release \
	    -DPython_EXECUTABLE=$(CURDIR)/$(PY)

build: configured
	@cmake --build build -j $(JOBS)

test: build
	ctest --preset release -j $(JOBS)
	bash tools/pytest.sh $(PYTEST_ARGS)

smoke: build
	ctest --preset release -j $(JOBS) -LE slow
	bash tools/pytest.sh $(PYTEST_ARGS) -m "not slow"

# Builds what the demonstration runs and no more.
demo: configured
	@cmake --build build -j $(JOBS) --target _headrace example_train_digits
	bash examples/demo.sh

demo-serving: configured
	@cmake --build build -j $(JOBS) --target _headrace headrace_serving
	bash examples/serve_digits.sh

bench: build
	@cmake --build build -j $(JOBS) --target headrace_benchmarks
	bash tools/bench.sh

docs: build
	PYTHONPATH=python $(PY) tools/reference.py dist/reference

wheel:
	@bash tools/bootstrap.sh wheel
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) bash tools/wheel.sh

serving-wheel: configured
	@bash tools/bootstrap.sh wheel
	@cmake --build build -j $(JOBS) --target headrace_serving headrace_grpc
	@ls dist/headrace-*.whl >/dev/null 2>&1 || $(MAKE) wheel
	bash tools/serving_wheel.sh

image: configured
	@cmake --build build -j $(JOBS) --target headrace_serving
	bash tools/image.sh

c-package: configured
	@bash tools/bootstrap.sh c-package
	@cmake --build build -j $(JOBS) --target headrace_c
	bash tools/c_package.sh

build-asan/build.ninja build-tsan/build.ninja:
	@cmake --preset $(patsubst build-%/build.ninja,%,$@) \
	    -DPython_EXECUTABLE=$(CURDIR)/$(PY)

build-asan build-tsan: build-%: bootstrap build-%/build.ninja
	@cmake --build --preset $* -j $(JOBS)

asan tsan: %: build-%
	ctest --preset $@ -j $(JOBS)

# What lies nearest to memory, against a module built with the address sanitizer.
build-asan-python: bootstrap build-asan/build.ninja
	@cmake --build build-asan -j $(JOBS) --target _headrace

asan-python: build-asan-python
	bash tools/asan_python.sh $(PYTEST_ARGS) -m "not slow" \
	    $(addprefix python/tests/,ops imaging eager data function graph io ragged train \
	    test_hostile_ops.py test_damaged_files.py test_cut_inputs.py)

# The ops are taken from the build of `asan`.
build-fuzz: bootstrap build-asan/build.ninja
	@bash tools/bootstrap.sh fuzz
	@cmake --build build-asan -j $(JOBS) --target headrace_uncovered
	@test -f build-fuzz/build.ninja || cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS) --target $(or $(FUZZERS),headrace_fuzzers)

fuzz: build-fuzz
	bash tools/fuzz.sh $(FUZZ_SECONDS) $(FUZZERS)

# Raw ops with hostile arguments in all ways of calling them, under the sanitizers.
fuzz-ops: build-asan-python
	bash tools/asan_python.sh run python/tests/fuzz_ops.py $(FUZZ_SECONDS)

soak: build build-fuzz build-asan-python
	@bash tools/bootstrap.sh soak
	bash tools/soak.sh

# All that several processes do together, with a real HDFS; and deaths of them.
test-cluster soak-cluster: %-cluster: build
	bash tools/cluster.sh $*

# One group of TensorFlow's own tests, another one each time.
upstream-turn: build
	@bash tools/bootstrap.sh soak
	.venv/bin/python tools/upstream.py --rotate "$$(git rev-list --count HEAD)"

format: bootstrap
	@bash tools/bootstrap.sh lint
	bash tools/format.sh --write

lint-format: bootstrap
	@bash tools/bootstrap.sh lint
	bash tools/format.sh --check

# What locks guard, as clang sees it: a minute and a half on two processors.
lint-locks: configured
	@bash tools/bootstrap.sh lint
	@cmake --build build -j $(JOBS) --target hr_proto_headers
	python3 tools/thread_safety.py

lint: lint-format lint-locks
	python3 tools/check_layers.py
	python3 tools/check_sizes.py

clean:
	rm -rf build build-* dist
	rm -f python/headrace/_headrace*.so
