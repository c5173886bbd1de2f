// Libraries that are loaded when they are first needed.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace {

// A name that a library shows, and how its file's name begins.
struct ShownSymbol {
  const char *symbol, *library;
};

// Loads the first of `places` that can be, for good: what it begins lives on.
// Where another library shows one of `symbols` to the whole process, as
// TensorFlow shows its own copies, what is loaded binds to its own libraries
// first. FailedPrecondition with what the loader says of each place.
StatusOr<void*> OpenSharedLibrary(const std::vector<std::string>& places,
                                  absl::Span<const ShownSymbol> symbols);

}  // namespace headrace
