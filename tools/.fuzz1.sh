#!/usr/bin/env bash
# tools/fuzz.sh SECONDS [NAME...]: runs every fuzzer that `make build-fuzz` made, or
# those named, until each has had so much processor time, over its corpus in
# tests/fuzz/corpus; one a processor side by side. What is found new stays under
# build-fuzz/corpus/. A crash ends with the input's path and a non-zero status; so
# does a machine so loaded that twenty times as long did not suffice.
# tools/fuzz.sh --list: the names of all.
set -euo pipefail
cd "$(dirname "$0")/.."
all_names() {
  find src -name '*_fuzz.cc' -printf '%f\n' | sort |
    sed 's/[.]cc$//'
}
if [ "${1:-}" = --list ]; then
  all_names
  exit
fi
seconds=${1:-60}
names=("${@:2}")
if [ "${#names[@]}" = 0 ]; then
  mapfile -t names < <(all_names)
fi
ticks=$(getconf CLK_TCK)
# Memory that is not to be had is an error that the library tells, no finding.
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}

spent() {  # pid: its processor time so far in ticks, nothing when it has ended
  { sed 's/.*) //' "/proc/$1/stat" | awk '$1 != "Z" {print $12 + $13}'; } \
    2>/dev/null || true
}

fuzz_one() {  # name: its log goes to build-fuzz/NAME.log
  local fresh=build-fuzz/corpus/$1 kept=tests/fuzz/corpus/$1 log=build-fuzz/$1.log
  local pid now used=0 status=0
  mkdir -p "$fresh"
  [ -d "$kept" ] || kept=
  # shellcheck disable=SC2086  # $kept may be absent
  build-fuzz/"$1" -max_total_time=$((seconds * 20)) -timeout=120 \
    -rss_limit_mb=4096 -artifact_prefix="build-fuzz/$1-" -print_final_stats=1 \
    "$fresh" $kept >"$log" 2>&1 &
  pid=$!
  # Signal 10, SIGUSR1, asks for the end of the run, which is no failure.
  while now=$(spent $pid) && [ -n "$now" ]; do
    used=$now
    [ "$used" -lt $((seconds * ticks)) ] || kill -10 $pid || true
    sleep 1
  done
  wait $pid || status=$?
  [ $status != 0 ] || [ "$used" -ge $((seconds * ticks)) ] || status=STARVED
  printf 'fuzz: %-20s %9s runs in %3d s of processor time, %5s edges%s\n' "$1" \
    "$(sed -n 's/stat::number_of_executed_units: *//p' "$log")" \
    $((used / ticks)) "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" \
    "$([ $status = 0 ] || echo ", FAILED ($status)")"
  [ $status = 0 ] || tail -n 60 "$log" | grep -v 'libprotobuf ERROR' || true
  [ $status = 0 ]
}
export -f fuzz_one spent
export seconds ticks
printf '%s\n' "${names[@]}" | xargs -P 1 -I{} bash -c 'fuzz_one {}'
