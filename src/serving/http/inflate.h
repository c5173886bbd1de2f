// Compressed bodies of requests.
#pragma once

#include <string>

#include "base/status.h"

namespace headrace::serving {

// What the gzip members of `in` hold. ResourceExhausted where that is more than
// `most` bytes, InvalidArgument where `in` is damaged or cut.
Status InflateGzip(StringView in, size_t most, std::string* out);

}  // namespace headrace::serving
