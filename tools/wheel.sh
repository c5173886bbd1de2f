#!/usr/bin/env bash
# Builds dist/headrace-*.whl: the module, then beside it every shared library
# it needs that a bare Linux has not (auditwheel: under names of their own, so
# that no other copy in the process is met), and tries it in an empty venv.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/.venv/bin:$PATH
raw=build/wheel-raw
rm -rf "$raw" dist/headrace-*.whl
python -m pip wheel -q . --no-deps --no-build-isolation \
  --disable-pip-version-check -w "$raw"
# The platform tag is the oldest that the module's symbols allow.
python -m auditwheel -v repair --strip --disable-isa-ext-check \
  --only-plat -w dist "$raw"/headrace-*.whl >build/wheel.log 2>&1 ||
  { tail -n 20 build/wheel.log >&2; exit 1; }
bash tools/wheel_test.sh dist/headrace-*.whl
