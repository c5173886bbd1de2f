#!/usr/bin/env bash
# tools/wheel_test.sh WHEEL: installs it in an empty venv far from this tree,
# imports it and holds it to its sizes: 25 MB as a file, 80 MB installed.
set -euo pipefail
wheel=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$(dirname "$0")"/../.venv/bin/python -m venv "$folder/venv"
python=$folder/venv/bin/python
"$python" -m pip install -q --disable-pip-version-check "$wheel"
cd "$folder"
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -X importtime -c 'import headrace._headrace' 2>&1 |
  sed -n 's/.*| *\([0-9]*\) | headrace$/import headrace: \1 us/p'
"$python" - "$site" <<'END'
import sys
import headrace
assert headrace.__file__.startswith(sys.argv[1]), headrace.__file__
maps = open("/proc/self/maps").read()
for name in ("libdnnl", "libprotobuf", "libabsl", "libre2", "libleveldb"):
    for line in maps.splitlines():
        if name in line and sys.argv[1] not in line:
            sys.exit("taken from the system: " + line.split()[-1])
END
"$folder/venv/bin/headrace" --version
packed=$(stat -c %s "$wheel")
installed=$(du -sbc "$site"/headrace "$site"/headrace.libs 2>/dev/null | tail -n 1 | cut -f 1)
echo "wheel: $(basename "$wheel"), $((packed / 1000000)) MB," \
  "installed $((installed / 1000000)) MB"
[ "$packed" -le 25000000 ] && [ "$installed" -le 80000000 ]
