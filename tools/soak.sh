#!/usr/bin/env bash
# What takes longer than .ci/run allows, all of it: TensorFlow's own tests with their
# shares held (tools/upstream.py), every fuzzer for SOAK_FUZZ_SECONDS of processor time
# (600), raw ops under the sanitizers for SOAK_OPS_SECONDS (1800), random ops watched
# for memory for SOAK_MEMORY_SECONDS (600), 1,200 generated programs through AutoGraph,
# 20,000 damaged files of converted code, 200 changes of versions and 50 ends of a server
# under load, 200 kills while saving, 20 full disks (as root). About four hours on two
# processors. Ends non-zero when any part fails, after all have run.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()

part() {  # name command...
  local name=$1 from=$SECONDS
  shift
  echo "=== $name"
  "$@" </dev/null || failed+=("$name")
  echo "--- $name: $((SECONDS - from)) s"
}

part "TensorFlow's tests" .venv/bin/python tools/upstream.py
part "fuzzers" bash tools/fuzz.sh "${SOAK_FUZZ_SECONDS:-600}"
part "raw ops" bash tools/asan_python.sh run python/tests/fuzz_ops.py \
  "${SOAK_OPS_SECONDS:-1800}"
part "memory" env HEADRACE_MEMORY_SECONDS="${SOAK_MEMORY_SECONDS:-600}" \
  .venv/bin/python -m pytest -q python/tests/test_memory.py -k flat
part "generated programs" env AUTOGRAPH_PROGRAMS=1200 \
  .venv/bin/python -m pytest -q python/tests/autograph/test_generated.py -k many
part "damaged files of converted code" env STORED_CODE_ROUNDS=20000 \
  STORED_CODE_SEED="$RANDOM" \
  .venv/bin/python -m pytest -q python/tests/autograph/test_stored_code.py -k random
part "threads where memory ends" env HEADRACE_MEMORY_STEPS=60 \
  .venv/bin/python -m pytest -q python/tests/test_limits.py -k threads_begin
part "a server's life" env HEADRACE_SERVING_SOAK=1 \
  .venv/bin/python -m pytest -q -s python/tests/serving/test_lifecycle.py
part "200 kills" .venv/bin/python python/tests/train/test_never_torn.py 200
[ "$(id -u)" != 0 ] ||
  part "20 full disks" .venv/bin/python python/tests/train/test_never_torn.py full 20

if [ "${#failed[@]}" != 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
fi
echo "soak: all parts passed"
