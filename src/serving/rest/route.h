// What a path of version 1 of the REST interface asks for.
#pragma once

#include <string>

#include "base/status.h"
#include "tensorflow_serving/apis/model.pb.h"

namespace headrace::serving {

struct RestRoute {
  enum class Kind { kClassify, kRegress, kPredict, kStatus, kMetadata };
  Kind kind;
  // Name, and version or label; the name may be empty where the kind is
  // kStatus or kMetadata.
  tensorflow::serving::ModelSpec spec;
};

// Whether a path is of that interface, or of nobody's.
bool IsRestPath(StringView path);
// InvalidArgument "Malformed request: METHOD PATH" and "Failed to convert
// version: V to numeric."
StatusOr<RestRoute> RouteOf(StringView method, StringView path);

// %41 is A; a '%' that no two hex digits follow is itself.
std::string PercentDecoded(StringView text);

// The HTTP status of a Status.
int HttpStatusOf(const Status& s);

}  // namespace headrace::serving
