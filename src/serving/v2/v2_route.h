// What a path of version 2 of the REST interface asks for.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace headrace::serving {

struct V2Route {
  enum class Kind {
    kServer,      // GET /v2
    kModel,       // GET /v2/models/M[/versions/V]
    kReady,       // GET ... /ready
    kStatistics,  // GET ... /stats, and of all models /v2/models/stats
    kInfer,       // POST ... /infer
    kIndex,       // POST /v2/repository/index
    kLoad,        // POST /v2/repository/models/M/load
    kUnload,      // POST /v2/repository/models/M/unload
  };
  Kind kind;
  std::string model, version;

  // The one HTTP method of the path.
  const char* Method() const;
};

// Nothing where there is no such path. Case counts.
std::optional<V2Route> V2RouteOf(StringView path);

}  // namespace headrace::serving
