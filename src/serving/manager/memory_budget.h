// Which loaded versions make room for another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "serving/model/servable.h"

namespace headrace::serving {

struct LoadedVersion {
  ServableId id;
  uint64_t bytes = 0;
  int64_t used = 0;  // when it was last found
  bool may_go = false;
};

// The least recently used of those that may go, as many as give back `bytes`;
// none where all of them together do not.
std::optional<std::vector<ServableId>> VersionsToPutOut(
    std::vector<LoadedVersion> loaded, uint64_t bytes);

}  // namespace headrace::serving
