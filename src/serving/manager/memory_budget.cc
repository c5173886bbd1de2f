#include "serving/manager/memory_budget.h"

#include <algorithm>

namespace headrace::serving {

std::optional<std::vector<ServableId>> VersionsToPutOut(
    std::vector<LoadedVersion> loaded, uint64_t bytes) {
  std::stable_sort(loaded.begin(), loaded.end(),
                   [](const LoadedVersion& a, const LoadedVersion& b) {
                     return a.used < b.used;
                   });
  std::vector<ServableId> go;
  for (const LoadedVersion& v : loaded) {
    if (bytes == 0) break;
    if (!v.may_go || v.bytes == 0) continue;
    go.push_back(v.id);
    bytes -= std::min(bytes, v.bytes);
  }
  if (bytes != 0) return std::nullopt;
  return go;
}

}  // namespace headrace::serving
