#!/usr/bin/env bash
# Builds dist/headrace_serving-*.whl from build/bin/headrace-serving,
# build/libheadrace_grpc.so and the wheel in dist/ (serving_wheel.py), and tries both in an empty venv: the program starts by each
# of its names and answers the client; it holds them to 20 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/$(<build-wheel/venv)
PATH=$venv/bin:$PATH
base=$(find dist -name 'headrace-*.whl' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
rm -f dist/headrace_serving-*.whl
wheel=$(python tools/serving_wheel.py build/bin/headrace-serving \
  build/libheadrace_grpc.so "$base" dist)

folder=$(mktemp -d)
server=''
finish() {
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
"$venv/bin/python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check "$base" "$wheel"
mkdir -p "$folder/models/plain"
cp -r tests/golden/saved_models/plain "$folder/models/plain/7"
cd "$folder"
venv/bin/headrace-serving --version
venv/bin/headrace serve --version
# The library finds all that it stands on.
venv/bin/python - <<'PROGRAM'
import ctypes, os
import headrace_serving
library = os.path.join(os.path.dirname(headrace_serving.__file__), "libheadrace_grpc.so")
assert ctypes.CDLL(library).HeadraceGrpcTransport
PROGRAM
port=$(venv/bin/python -c '
import socket
a, b = (socket.create_server(("", 0)) for _ in range(2))
print(a.getsockname()[1], b.getsockname()[1])')
MODEL_NAME=plain MODEL_BASE_PATH=$folder/models \
  venv/bin/headrace serve --port="${port% *}" --rest_api_port="${port#* }" &
server=$!
venv/bin/python - "http://127.0.0.1:${port#* }" <<'PROGRAM'
import sys, time
import numpy as np
from headrace.serving import Client
with Client(sys.argv[1]) as client:
    end = time.monotonic() + 60
    while not client.ready():
        assert time.monotonic() < end, "the server never became ready"
        time.sleep(0.02)
    answer = client.predict("plain", {"x": np.array([1, 2], np.float32)})
    assert answer["twice"].tolist() == [2, 4], answer
PROGRAM
kill -TERM "$server"
wait "$server"
server=''
cd - >/dev/null
packed=$(stat -c %s "$wheel")
site=$("$folder/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "wheel: $(basename "$wheel"), $(awk "BEGIN {printf \"%.1f\", $packed / 1e6}") MB, installed" \
  "$(du -sc --apparent-size -BM "$site"/headrace_serving* | tail -n 1 | cut -f 1)"
[ "$packed" -le 20000000 ]
