// The library's own version. Headers and library of one minor version fit.
#pragma once

#include "headrace/export.h"

#define HR_VERSION_MAJOR 0
#define HR_VERSION_MINOR 1
#define HR_VERSION_PATCH 0

namespace headrace {

// The version of the library that is loaded, as "0.1.0". Never null; the text
// is static. Safe from any thread.
HR_API const char* Version();

}  // namespace headrace
