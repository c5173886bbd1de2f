#!/usr/bin/env bash
# tools/asan_python.sh ARGUMENTS...: runs pytest, or with `run` before them a program,
# against the module that the asan preset built: the package is mirrored by links into
# build-asan/python, beside it.
set -euo pipefail
program=(-m pytest)
if [ "${1:-}" = run ]; then
  program=()
  shift
fi
cd "$(dirname "$0")/.."
(cd python && find headrace -type f ! -name '*.so' ! -name '*.pyc' \
  ! -name '*.desc') |
  while read -r file; do
    mkdir -p "build-asan/python/$(dirname "$file")"
    ln -sf "$PWD/python/$file" "build-asan/python/$file"
  done
ln -sfn "$PWD/include" build-asan/include  # for libraries of users
PYTHONPATH=$PWD/build-asan/python PYTHONMALLOC=malloc \
  PYTHONDONTWRITEBYTECODE=1 \
  ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048:detect_stack_use_after_return=1" \
  UBSAN_OPTIONS=print_stacktrace=1 \
  LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so) $(g++ -print-file-name=libstdc++.so)" \
  .venv/bin/python "${program[@]}" "$@"
