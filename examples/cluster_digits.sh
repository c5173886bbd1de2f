#!/usr/bin/env bash
# The digits on clusters of this machine: two workers and two parameter servers, in step
# and each for itself, and a ring of three workers. What is trained in step must end with
# the weights of one process that applies the mean gradient; the last lines say how far
# they are apart, and the script fails where that is more than 1e-6.
# CLUSTER_DATA: the digits elsewhere (hdfs://...).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON_OF_DEMO:-.venv/bin/python}
data=${CLUSTER_DATA:-$PWD/examples/data/digits.bin}
export PYTHONPATH=$PWD/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

launch() { "$python" -m headrace._command run "$@"; }
digits() {  # way options of the launcher... : what the first worker says
  local way=$1
  shift
  launch "$@" examples/cluster_digits.py "$way" --data "$data" \
    --weights "$folder/$way.npz" >"$folder/$way.log" 2>&1 || {
    cat "$folder/$way.log" >&2
    exit 1
  }
  echo "$way: $(sed -n 's/^\[worker 0\] \(test accuracy.*\)/\1/p' "$folder/$way.log")"
}
alone() {  # workers
  "$python" examples/cluster_digits.py alone --workers "$1" --data "$data" \
    --weights "$folder/alone$1.npz"
}

echo "two in one: $(alone 2)"
digits sync -n 2 --ps 2
digits async -n 2 --ps 2
echo "three in one: $(alone 3)"
digits ring -n 3
"$python" - "$folder" sync alone2 ring alone3 <<'END'
import sys
import numpy as np

folder, *names = sys.argv[1:]
for ours, alone in zip(names[::2], names[1::2]):
    a, b = (np.load(f"{folder}/{name}.npz") for name in (ours, alone))
    apart = max(abs(a[key] - b[key]).max() for key in b)
    print(f"{ours}: weights differ from one process by {apart:.2g} at most")
    if not apart <= 1e-6:
        sys.exit(1)
END
