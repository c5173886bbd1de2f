#!/usr/bin/env bash
# tools/fuzz.sh SECONDS: builds every *_fuzz.cc with libFuzzer and runs each so
# long over its corpus in tests/fuzz/corpus. What is found new stays under
# build-fuzz/; a crash ends with the input's path and a non-zero status.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
mapfile -t sources < <(find src -name '*_fuzz.cc' | sort)
if [ "${#sources[@]}" = 0 ]; then
  echo "no fuzz targets in this tree"
  exit 0
fi
[ -f build-fuzz/build.ninja ] || cmake --preset fuzz
cmake --build --preset fuzz -j "$(nproc)"
pids=()
status=0
for source in "${sources[@]}"; do
  name=$(basename "$source" .cc)
  fresh=build-fuzz/corpus/$name
  kept=tests/fuzz/corpus/$name
  mkdir -p "$fresh"
  [ -d "$kept" ] || kept=
  # shellcheck disable=SC2086  # $kept may be absent
  build-fuzz/"$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 \
    -artifact_prefix="build-fuzz/$name-" -print_final_stats=1 \
    "$fresh" $kept >"build-fuzz/$name.log" 2>&1 &
  pids+=($!)
  if [ "${#pids[@]}" -ge "$(nproc)" ]; then
    wait "${pids[0]}" || status=1
    pids=("${pids[@]:1}")
  fi
done
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
for source in "${sources[@]}"; do
  name=$(basename "$source" .cc)
  runs=$(sed -n 's/stat::number_of_executed_units: *//p' "build-fuzz/$name.log")
  echo "fuzz: $name: ${runs:-no} runs"
  [ -n "$runs" ] || tail -n 40 "build-fuzz/$name.log"
done
exit $status
