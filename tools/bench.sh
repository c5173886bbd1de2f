#!/usr/bin/env bash
# Runs every benchmark: programs of benchmarks/*.cc, then benchmarks/*.py, then
# the peers' workloads when ../shared/peers is there. Words choose by name.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in build/benchmarks/*; do
  [ -x "$program" ] && [ -f "$program" ] && { echo "== $program"; "$program"; }
done
for script in benchmarks/*.py; do
  # (One without a main program is what others share.)
  grep -qs __main__ "$script" && { echo "== $script"; .venv/bin/python "$script" "$@"; }
done
if [ -f ../shared/peers/tf_api.py ]; then
  echo "== ../shared/peers/tf_api.py"
  .venv/bin/python ../shared/peers/tf_api.py --module=headrace "$@"
fi
