#!/bin/sh
# Fails if a *_loops.cc object holds an inline function outside its level's
# namespace: the linker keeps one copy of such a function for the whole
# library, perhaps the one compiled for a processor that the user lacks. Eigen's and
# pocketfft's stand in namespaces of the levels' own.
# Usage: tools/check_levels.sh BUILD_FOLDER
status=0
for level in v3 v4; do
  leaks=$(find "$1/src/CMakeFiles/hr_loops_$level.dir" -name '*.o' \
            -exec nm -AC --defined-only {} + |
          grep -E ' [VWu] ' | grep -v -E "(headrace::|Eigen_|pocketfft_)$level::|DW.ref")
  if [ -n "$leaks" ]; then
    echo "$leaks"
    status=1
  fi
done
exit $status
