#!/usr/bin/env bash
# tools/fuzz.sh SECONDS: runs every fuzzer that `make build-fuzz` made so long over
# its corpus in tests/fuzz/corpus. What is found new stays under build-fuzz/; a
# crash ends with the input's path and a non-zero status.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
mapfile -t sources < <(find src -name '*_fuzz.cc' | sort)
if [ "${#sources[@]}" = 0 ]; then
  echo "no fuzz targets in this tree"
  exit 0
fi

fuzz_one() {  # name: its log goes to build-fuzz/NAME.log
  local fresh=build-fuzz/corpus/$1 kept=tests/fuzz/corpus/$1
  mkdir -p "$fresh"
  [ -d "$kept" ] || kept=
  # shellcheck disable=SC2086  # $kept may be absent
  build-fuzz/"$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 \
    -artifact_prefix="build-fuzz/$1-" -print_final_stats=1 \
    "$fresh" $kept >"build-fuzz/$1.log" 2>&1 && local status=0 || local status=1
  echo "fuzz: $1: $(sed -n 's/stat::number_of_executed_units: *//p' \
    "build-fuzz/$1.log") runs$([ $status = 0 ] || echo ", FAILED")"
  [ $status = 0 ] || tail -n 60 "build-fuzz/$1.log"
  return $status
}
export -f fuzz_one
export seconds
for source in "${sources[@]}"; do basename "$source" .cc; done |
  xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}'
