#!/usr/bin/env bash
# Builds dist/headrace-*.whl: the module, then beside it every shared library
# it needs that a bare Linux has not (auditwheel: under names of their own, so
# that no other copy in the process is met), and tries it in empty venvs.
# It is built with the Python that `PYTHON=... tools/bootstrap.sh wheel` prepared:
# 3.12 or later makes the wheel of the stable ABI, which serves 3.12 and all later.
# TRY_PYTHONS lists those to try it with, in place of that one.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/$(<build-wheel/venv)
PATH=$venv/bin:$PATH
# (A Python may say that its modules are compiled by another name of the compiler,
# for which the compiler's cache has nothing.)
export CC=${CC:-cc} CXX=${CXX:-c++}
raw=build-wheel/raw
rm -rf "$raw"
mkdir -p "$raw" dist
python -m pip wheel -q . --no-deps --no-build-isolation \
  --disable-pip-version-check -w "$raw"
# What editors read (tools/stubs.py) is made of the package itself and goes beside it.
python -m wheel unpack -d "$raw/open" "$raw"/headrace-*.whl >/dev/null
tree=$(echo "$raw"/open/headrace-*)
PYTHONPATH=$tree python tools/stubs.py "$tree/headrace-stubs"
find "$tree" -name __pycache__ -prune -exec rm -r {} +
rm "$raw"/headrace-*.whl
python -m wheel pack -d "$raw" "$tree" >/dev/null
# The platform tag is the oldest that the module's symbols allow.
python -m auditwheel -v repair -z 9 --strip --disable-isa-ext-check \
  --only-plat -w "$raw/repaired" "$raw"/headrace-*.whl >build-wheel/wheel.log 2>&1 ||
  { tail -n 20 build-wheel/wheel.log >&2; exit 1; }
wheel=$(basename "$raw"/repaired/headrace-*.whl)
tags=${wheel#headrace-*-}
rm -f dist/headrace-*-"${tags%%-*}"-*.whl # older ones of this Python
mv "$raw/repaired/$wheel" dist/
for try in ${TRY_PYTHONS:-"$venv/bin/python"}; do
  bash tools/wheel_test.sh "dist/$wheel" "$try"
done
