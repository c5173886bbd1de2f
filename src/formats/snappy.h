// Snappy: blocks of old tables and states of iterators are packed with it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace headrace {

// Unpacks into *out; false when the bytes are damaged.
bool SnappyUnpack(absl::string_view in, std::string* out);

// Packs into *out without looking for repeats: a few bytes more than `in`.
void SnappyPack(absl::string_view in, std::string* out);

}  // namespace headrace
