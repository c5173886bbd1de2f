#!/usr/bin/env bash
# tools/format.sh --check | --write: clang-format on C++, ruff on Python, over
# the files that git tracks or would track, but for third_party/.
set -euo pipefail
cd "$(dirname "$0")/.."
files() { git ls-files --cached --others --exclude-standard -- "$@" \
            ':!third_party' |
          while read -r f; do [ -f "$f" ] && echo "$f"; done || true; }
mapfile -t cc < <(files '*.h' '*.cc' '*.cu')
mapfile -t py < <(files '*.py')
case ${1:-} in
  --write)
    clang-format -i "${cc[@]}"
    .venv/bin/ruff format -q "${py[@]}"
    ;;
  --check)
    status=0
    printf '%s\n' "${cc[@]}" | xargs -P "$(nproc)" -n 40 \
      clang-format --dry-run -Werror || status=1
    .venv/bin/ruff format -q --check "${py[@]}" || status=1
    echo "format: ${#cc[@]} C++ and ${#py[@]} Python files," \
      "$([ $status = 0 ] && echo "all as the formatters want them" ||
         echo "some differ: make format")"
    exit $status
    ;;
  *)
    echo "usage: tools/format.sh --check | --write" >&2
    exit 2
    ;;
esac
