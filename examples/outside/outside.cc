// Built outside Headrace's tree against what was installed, once with the
// shared and once with the static library.
#include <cstdio>

#include "headrace/version.h"

int main() {
  std::printf("headrace %s\n", headrace::Version());
  return 0;
}
