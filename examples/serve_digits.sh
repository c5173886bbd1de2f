#!/usr/bin/env bash
# The digits from training to release: trained, exported, served, asked over gRPC and
# REST in both protocols, trained further while asked, the new version tried by a
# canary label and then made the stable one, the server drained by SIGTERM. It ends
# with "asked: N  lost: 0  p99.9/p50: x.x".
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON_OF_DEMO:-.venv/bin/python}
server=${SERVER_OF_DEMO:-build/bin/headrace-serving}
[ -x "$server" ] || { echo "serve_digits: $server was not built" >&2; exit 1; }
export PYTHONPATH=$PWD/python:$PWD/examples OMP_NUM_THREADS=1
folder=$(mktemp -d)
serving='' asking=''
finish() {
  for pid in $asking $serving; do kill -9 "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap finish EXIT
part() { "$python" examples/serve_digits.py "$@"; }

# Waits until a file has a line, while the process that writes it lives.
await_line() {
  for _ in $(seq 15000); do
    grep -q "$2" "$1" 2>/dev/null && return
    kill -0 "$3" 2>/dev/null || break
    sleep 0.02
  done
  echo "serve_digits: '$2' never came:" >&2
  cat "$1" >&2
  exit 1
}

# Which versions carry which labels; moved into place, so that no half of it is read.
write_config() {
  local label labels=''
  for label in "$@"; do
    labels+=" version_labels { key: \"${label%=*}\" value: ${label#*=} }"
  done
  cat >"$folder/models.config.tmp" <<END
model_config_list { config {
  name: "digits" base_path: "$folder/models" model_platform: "tensorflow"
  model_version_policy { all {} } $labels
} }
END
  mv "$folder/models.config.tmp" "$folder/models.config"
}

read -r port rest_port < <("$python" -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')

mkdir "$folder/models"
"$python" examples/train_digits.py --folder "$folder/trained" --steps 100 | tail -n 1
part export --folder "$folder/trained" --to "$folder/models/1"
write_config stable=1
"$server" --port="$port" --rest_api_port="$rest_port" \
  --model_config_file="$folder/models.config" --model_config_file_poll_wait_seconds=1 \
  --allow_version_labels_for_unavailable_models \
  --drain_delay_seconds=2 2>"$folder/server.log" &
serving=$!
await_line "$folder/server.log" 'Running gRPC ModelServer' "$serving"
part ask --grpc "127.0.0.1:$port" --rest "http://127.0.0.1:$rest_port" \
  --canary "$folder/canary" >"$folder/ask.log" &
asking=$!
await_line "$folder/ask.log" '^asking' "$asking"

echo "serve_digits: training goes on while version 1 answers"
"$python" examples/train_digits.py --folder "$folder/trained" --steps 500 | tail -n 1
part export --folder "$folder/trained" --to "$folder/models/2"
part await --target "127.0.0.1:$port" --version 2
write_config stable=1 canary=2
part await --target "127.0.0.1:$port" --version 2 --label canary
touch "$folder/canary"
echo "serve_digits: version 2 answers as the canary"
await_line "$folder/ask.log" 'version 2 has answered' "$asking"
write_config stable=2 canary=2
part await --target "127.0.0.1:$port" --version 2 --label stable
echo "serve_digits: version 2 is the stable one; the server is told to stop"
kill -TERM "$serving"
status=0
wait "$asking" || status=$?
asking=''
wait "$serving" || { echo "serve_digits: the server ended with $?" >&2; status=1; }
serving=''
cat "$folder/ask.log"
exit "$status"
