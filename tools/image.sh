#!/usr/bin/env bash
# Builds dist/image/, the context of a container image that holds headrace-serving, the
# libraries it needs, their licences, and nothing else: `docker build dist/image`. As
# root it is tried by chroot: the program says its version, and serves a model that the
# image's variables name.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/bin/headrace-serving}
context=dist/image
root=$context/root
rm -rf "$context"
mkdir -p "$root"/models "$root"/tmp "$root"/licences
chmod 1777 "$root/tmp"
cp "$program" "$root/headrace-serving"
strip "$root/headrace-serving"
cp LICENSE "$root/licences/headrace"
# The loader stands where programs name it, libraries where the loader looks.
ldd "$program" | sed -n 's|.*=> \(/[^ ]*\) .*|\1|p; s|^[[:space:]]*\(/[^ ]*\) (.*|\1|p' |
  sort -u | while read -r path; do
  mkdir -p "$root$(dirname "$path")"
  cp -L "$path" "$root$path"
  real=$(realpath "$path") # which Debian may know with /usr or without
  package=$(dpkg -S "$path" 2>/dev/null || dpkg -S "$real" 2>/dev/null ||
    dpkg -S "${real#/usr}")
  package=${package%%:*}
  cp "/usr/share/doc/$package/copyright" "$root/licences/$package"
done
cp tools/Dockerfile.serving "$context/Dockerfile"
echo "image: $(find "$root" -type f -o -type l | wc -l) files, of which"
(cd "$root" && find . -type f -size +1M -printf '%s %P\n' | sort -nr) |
  awk '{printf "%6.1f MB  %s\n", $1 / 1e6, $2}'
echo "image: $(du -s --apparent-size -B1000 "$root" | awk '{printf "%.1f MB", $1 / 1000}')"

if [ "$(id -u)" != 0 ]; then
  echo "image: not tried, as chroot wants root"
  exit 0
fi
chroot "$root" /headrace-serving --version
folder=$(mktemp -d)
server=''
finish() {
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  rm -rf "$folder" "$root"/models/plain
}
trap finish EXIT
mkdir -p "$root/models/plain"
cp -r tests/golden/saved_models/plain "$root/models/plain/3"
read -r port rest_port < <(python3 -c '
import socket
a, b = (socket.create_server(("", 0)) for _ in range(2))
print(a.getsockname()[1], b.getsockname()[1])')
env -i PATH="$PATH" MODEL_NAME=plain MODEL_BASE_PATH=/models \
  chroot "$root" /headrace-serving --port="$port" --rest_api_port="$rest_port" \
  2>"$folder/log" &
server=$!
for _ in $(seq 3000); do
  curl -sf "http://127.0.0.1:$rest_port/v2/health/ready" >/dev/null && break
  kill -0 "$server" || { cat "$folder/log" >&2; exit 1; }
  sleep 0.02
done
answer=$(curl -s -d '{"inputs": [1, 2]}' "http://127.0.0.1:$rest_port/v1/models/plain:predict")
echo "$answer" | tr -d ' \n' | grep -q '"twice":\[2.0,4.0\]' || { echo "$answer" >&2; exit 1; }
kill -TERM "$server"
wait "$server"
server=''
echo "image: served a model within chroot, and ended with 0"
