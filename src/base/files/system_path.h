// Paths as the system's calls take them.
#pragma once

#include <string>

#include "base/status.h"

namespace headrace {

// The system's calls end a path at its first NUL, where it would be another
// file's: InvalidArgument for paths that have one. Whatever opens files by
// itself asks here.
StatusOr<const char*> SystemPath(const std::string& path);

}  // namespace headrace
