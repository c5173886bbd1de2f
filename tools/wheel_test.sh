#!/usr/bin/env bash
# tools/wheel_test.sh WHEEL PYTHON: installs it in an empty venv far from this
# tree, tries it there (wheel_try.py) and holds it to its sizes: 28 MB as a file,
# 94 MB installed. Of the 92.8 MB that it has, oneDNN as Debian has it takes 39.8, the
# module 30.2, the other libraries 7.8, Python 4.9 and pip's bytecode of it 9.0 (the
# last two grow with every public name), tables 1.
set -euo pipefail
wheel=$(realpath "$1")
tools=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$2" -m venv "$folder/venv"
python=$folder/venv/bin/python
"$python" -m pip install -q --disable-pip-version-check "$wheel"
cd "$folder"
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -X importtime -c 'import headrace._headrace' 2>&1 |
  sed -n 's/.*| *\([0-9]*\) | *headrace$/import headrace: \1 us/p'
"$python" "$tools/wheel_try.py" "$site" "$tools/../tests/golden/saved_models"
"$folder/venv/bin/headrace" --version
packed=$(stat -c %s "$wheel")
installed=$(du -sbc "$site"/headrace "$site"/headrace.libs 2>/dev/null | tail -n 1 | cut -f 1)
echo "wheel: $(basename "$wheel"), $(awk "BEGIN {printf \"%.1f\", $packed / 1e6}") MB," \
  "installed $((installed / 1000000)) MB"
[ "$packed" -le 28000000 ] && [ "$installed" -le 94000000 ]
