// Handles of iterators as text.
#pragma once

#include <string>

#include "base/status.h"
#include "tensor/variant.h"

namespace headrace {

// A text that names the handle in this process; it keeps nothing alive.
std::string TextOfHandle(const ResourceHandle& handle);
// The handle that a text names, without a resource where that is gone.
// InvalidArgument for other texts.
StatusOr<ResourceHandle> HandleOfText(const std::string& text);

}  // namespace headrace
