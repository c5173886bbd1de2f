#!/usr/bin/env bash
# Runs the Python tests with the arguments given. A tree that holds none yet
# passes; one whose tests are all deselected does not.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "$(find python/tests tests -name 'test_*.py' -print -quit 2>/dev/null)" ]; then
  echo "no Python tests in this tree"
  exit 0
fi
# This tree's package, whichever tree .venv was made for.
export PYTHONPATH="$PWD/python${PYTHONPATH:+:$PYTHONPATH}"
exec .venv/bin/python -m pytest "$@"
