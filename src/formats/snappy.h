// The reading half of Snappy: blocks of old tables may be packed with it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace headrace {

// Unpacks into *out; false when the bytes are damaged.
bool SnappyUnpack(absl::string_view in, std::string* out);

}  // namespace headrace
