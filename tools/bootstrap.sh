#!/usr/bin/env bash
# Installs what a step needs and is not there yet; quick when all is there.
#   tools/bootstrap.sh [build] [lint] [fuzz] [wheel] [c-package] [soak]
# build: Debian packages and .venv with what building and testing need
# lint:  formatters and clang      fuzz: clang with libFuzzer
# c-package: what its archives are made with
# soak:  what TensorFlow's own tests import, in .venv
# wheel: what make wheel builds with, in build-wheel/, a venv for each Python
# PYTHON names the interpreter that .venv, or that of the wheel, is made with.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(
  cmake ninja-build g++ ccache mold pkg-config
  libdnnl-dev libeigen3-dev ocl-icd-opencl-dev libprotobuf-dev protobuf-compiler
  libabsl-dev libleveldb-dev libre2-dev libsnappy-dev zlib1g-dev
  libpng-dev libjpeg62-turbo-dev libwebp-dev
  libxsimd-dev libhwy-dev libgtest-dev python3-venv python3-dev
  libgrpc++-dev libevent-dev libssl-dev libcurl4-openssl-dev
)
lint_packages=(clang-format clang)
fuzz_packages=(clang libclang-rt-14-dev)

retry() {  # command...: three tries, for a network that hiccups
  for pause in 5 15 0; do
    "$@" && return 0
    [ "$pause" = 0 ] || sleep "$pause"
  done
  echo "bootstrap: failed three times: $*" >&2
  return 1
}

missing_of() {  # package...: those that are not installed
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null |
      grep -qx installed || echo "$package"
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "bootstrap: not a Debian system; taking these to be there: $*" >&2
    return 0
  fi
  local missing sudo=()
  missing=$(missing_of "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "bootstrap: neither root nor sudo; install these first:" $missing >&2
      return 1
    fi
    sudo=(sudo)
  fi
  echo "bootstrap: installing" $missing
  retry "${sudo[@]}" apt-get -q update
  # shellcheck disable=SC2086  # one word a package
  retry "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install \
    -y --no-install-recommends $missing
}

interpreter() {
  if [ -n "${PYTHON:-}" ]; then
    echo "$PYTHON"
  elif [ -x /usr/bin/python3 ]; then
    echo /usr/bin/python3
  else
    command -v python3
  fi
}

# A .venv whose interpreter went away or was made for another PYTHON is
# replaced.
make_venv() {
  local python
  python=$(interpreter)
  local version='import sys; print("%d.%d" % sys.version_info[:2])'
  local wanted
  wanted=$("$python" -c "$version")
  if [ "$(.venv/bin/python -c "$version" 2>/dev/null)" != "$wanted" ]; then
    rm -rf .venv
    "$python" -m venv .venv
  fi
  local site
  site=$(.venv/bin/python -c 'import sysconfig
print(sysconfig.get_path("purelib"))')
  if [ "$(cat "$site/headrace.pth" 2>/dev/null)" != "$PWD/python" ]; then
    echo "$PWD/python" >"$site/headrace.pth"
  fi
}

pip_install() {  # requirements-file [venv]: skipped while the file is unchanged
  local venv=${2:-.venv}
  local stamp=$venv/.installed-$(basename "$1")
  cmp -s "$1" "$stamp" && return 0
  retry "$venv/bin/python" -m pip install -q --disable-pip-version-check \
    --no-warn-script-location -r "$1"
  cp "$1" "$stamp"
}

for step in "${@:-build}"; do
  case $step in
    build)
      install_packages "${build_packages[@]}"
      make_venv
      pip_install tools/requirements.txt
      ;;
    lint)
      install_packages "${lint_packages[@]}"
      pip_install tools/requirements-lint.txt
      ;;
    c-package) install_packages libdeflate-tools ;;
    fuzz) install_packages "${fuzz_packages[@]}" ;;
    soak) pip_install tools/requirements-soak.txt ;;
    wheel)
      install_packages "${build_packages[@]}"
      venv=build-wheel/$("$(interpreter)" -c 'import sys
print(sys.implementation.cache_tag)')
      "$venv/bin/python" -c '' 2>/dev/null ||
        { rm -rf "$venv" && "$(interpreter)" -m venv "$venv"; }
      pip_install tools/requirements-wheel.txt "$venv"
      echo "$venv" >build-wheel/venv
      ;;
    *)
      echo "bootstrap: no step '$step'" >&2
      exit 2
      ;;
  esac
done
