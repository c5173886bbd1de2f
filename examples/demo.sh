#!/usr/bin/env bash
# The digits: train in Python, kill it after its first checkpoint, go on where
# it stopped, restore the result in C++. What it asks of the two programs:
#   train_digits.py --folder F             trains; resumes what F holds; its
#                                          last line is "test accuracy: 0.9xxx"
#   train_digits    --folder F --evaluate  restores F's newest checkpoint and
#                                          ends with the same line
set -euo pipefail
cd "$(dirname "$0")/.."
for program in examples/train_digits.py build/examples/train_digits; do
  [ -f "$program" ] && continue
  echo "demo: $program is not in this tree yet" >&2
  exit 1
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

.venv/bin/python examples/train_digits.py --folder "$folder" &
trainer=$!
for _ in $(seq 6000); do
  compgen -G "$folder/*.index" >/dev/null && break
  kill -0 "$trainer" 2>/dev/null || break
  sleep 0.02
done
if kill -9 "$trainer" 2>/dev/null; then
  echo "demo: killed after the first checkpoint; starting again"
fi
wait "$trainer" 2>/dev/null || true

accuracy() { sed -n 's/^test accuracy: \([0-9.]*\).*/\1/p' | tail -n 1; }
.venv/bin/python examples/train_digits.py --folder "$folder" |
  tee "$folder/python.log"
build/examples/train_digits --folder "$folder" --evaluate |
  tee "$folder/cc.log"
echo "test accuracy: $(accuracy <"$folder/python.log") (python)" \
  "$(accuracy <"$folder/cc.log") (c++)"
