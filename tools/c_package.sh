#!/usr/bin/env bash
# Builds dist/libtensorflow-headrace-*.tar.gz: the C library under the names that
# bindings of other languages look for, with the libraries that a bare Linux has
# not, the headers, and files for pkg-config and CMake; and the same as a .tar.xz,
# of three fifths the size, for who fetches it by hand. Then tries both: C programs
# are built against what was unpacked, and run.
set -euo pipefail
cd "$(dirname "$0")/.."
version=2.21.0 # of TensorFlow, whose interface it is
library=$(readlink -f build/libheadrace_c.so)
stage=build/c-package
name=libtensorflow-headrace-cpu-linux-$(uname -m)
rm -rf "$stage" "dist/$name".tar.{gz,xz}
mkdir -p "$stage"/lib/headrace "$stage"/lib/pkgconfig \
  "$stage"/lib/cmake/headrace_c "$stage"/include dist

cp "$library" "$stage/lib/libtensorflow.so.$version"
# What the system itself brings: the C library (libmvec is a part of it, and of no
# other version than its libm), the loader, the compiler's runtime.
system='^(linux-vdso|ld-linux.*|libc|libm|libmvec|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
ldd "$library" | awk '$3 ~ /^\// {print $1, $3}' | while read -r soname path; do
  [[ $soname =~ $system ]] || cp "$(readlink -f "$path")" "$stage/lib/headrace/$soname"
done
strip --strip-unneeded "$stage"/lib/libtensorflow.so."$version" "$stage"/lib/headrace/*
for link in libtensorflow.so.2 libtensorflow_framework.so.2 libheadrace_c.so.0; do
  ln -s "libtensorflow.so.$version" "$stage/lib/$link"
done
ln -s libtensorflow.so.2 "$stage/lib/libtensorflow.so"
ln -s libtensorflow_framework.so.2 "$stage/lib/libtensorflow_framework.so"
ln -s libheadrace_c.so.0 "$stage/lib/libheadrace_c.so"
cp -r include/tensorflow "$stage/include/"
cp LICENSE "$stage/"

cat >"$stage/lib/pkgconfig/tensorflow.pc" <<PC
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: TensorFlow
Description: TensorFlow's C interface, as Headrace has it
Version: $version
Libs: -L\${libdir} -ltensorflow
Cflags: -I\${includedir}
PC
cat >"$stage/lib/cmake/headrace_c/headrace_c-config.cmake" <<'CONFIG'
# headrace_c::tensorflow: the C library and its headers.
get_filename_component(_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET headrace_c::tensorflow)
  add_library(headrace_c::tensorflow SHARED IMPORTED)
  set_target_properties(headrace_c::tensorflow PROPERTIES
      IMPORTED_LOCATION "${_root}/lib/libtensorflow.so"
      INTERFACE_INCLUDE_DIRECTORIES "${_root}/include")
endif()
unset(_root)
CONFIG

packed() { tar -C "$stage" --sort=name --owner=0 --group=0 -c .; }
# The filter knows how calls look in machine code, and saves a tenth.
case $(uname -m) in
  x86_64) filter=--x86 ;;
  aarch64) filter=--arm64 ;;
  *) filter= ;;
esac

# (A gzip that looks for the shortest form: 3% less than gzip's own.)
packed | libdeflate-gzip -12 -c >"dist/$name.tar.gz"
packed | xz -c $filter --lzma2=preset=9e,lc=4 >"dist/$name.tar.xz"

try=$(mktemp -d)
trap 'rm -rf "$try"' EXIT
for form in gz xz; do
  mkdir "$try/$form"
  tar -C "$try/$form" -xf "dist/$name.tar.$form"
  export PKG_CONFIG_PATH=$try/$form/lib/pkgconfig
  for program in tensors graphs; do
    # shellcheck disable=SC2046
    "${CC:-cc}" -std=c11 tests/c/$program.c -o "$try/$program" \
      $(pkg-config --cflags --libs tensorflow) -Wl,-rpath,"$try/$form/lib"
    "$try/$program"
  done
done
(cd "$stage" && find . -type f -size +100k -printf '%s %P\n' | sort -nr) |
  awk '{printf "%6.1f MB  %s\n", $1 / 1e6, $2}'
for form in gz xz; do
  ls -l "dist/$name.tar.$form" | awk '{printf "%s: %.1f MB\n", $NF, $5 / 1e6}'
done
