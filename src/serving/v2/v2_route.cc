#include "serving/v2/v2_route.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "serving/rest/route.h"

namespace headrace::serving {
namespace {

using RouteKind = V2Route::Kind;
using Parts = std::vector<StringView>;

// Of the parts behind /v2/models.
std::optional<V2Route> ModelRoute(Parts parts) {
  if (parts == Parts{"stats"}) return V2Route{RouteKind::kStatistics, "", ""};
  if (parts.empty() || parts[0].empty()) return std::nullopt;
  V2Route route{RouteKind::kModel, PercentDecoded(parts[0]), ""};
  size_t next = 1;
  if (parts.size() >= 3 && parts[1] == "versions" && !parts[2].empty()) {
    route.version = PercentDecoded(parts[2]);
    next = 3;
  }
  if (parts.size() == next) return route;
  if (parts.size() != next + 1) return std::nullopt;
  if (parts[next] == "ready") {
    route.kind = RouteKind::kReady;
  } else if (parts[next] == "infer") {
    route.kind = RouteKind::kInfer;
  } else if (parts[next] == "stats") {
    route.kind = RouteKind::kStatistics;
  } else {
    return std::nullopt;
  }
  return route;
}

// Of the parts behind /v2/repository.
std::optional<V2Route> RepositoryRoute(const Parts& parts) {
  if (parts == Parts{"index"}) return V2Route{RouteKind::kIndex, "", ""};
  if (parts.size() != 3 || parts[0] != "models" || parts[1].empty()) {
    return std::nullopt;
  }
  const std::string model = PercentDecoded(parts[1]);
  if (parts[2] == "load") return V2Route{RouteKind::kLoad, model, ""};
  if (parts[2] == "unload") return V2Route{RouteKind::kUnload, model, ""};
  return std::nullopt;
}

}  // namespace

const char* V2Route::Method() const {
  switch (kind) {
    case Kind::kInfer:
    case Kind::kIndex:
    case Kind::kLoad:
    case Kind::kUnload:
      return "POST";
    default:
      return "GET";
  }
}

std::optional<V2Route> V2RouteOf(StringView path) {
  Parts parts = absl::StrSplit(path, '/');
  if (parts.size() < 2 || !parts[0].empty() || parts[1] != "v2") {
    return std::nullopt;
  }
  // A slash at the end is no further part.
  if (parts.size() > 2 && parts.back().empty()) parts.pop_back();
  if (parts.size() == 2) return V2Route{RouteKind::kServer, "", ""};
  const Parts rest(parts.begin() + 3, parts.end());
  if (parts[2] == "models") return ModelRoute(rest);
  if (parts[2] == "repository") return RepositoryRoute(rest);
  return std::nullopt;
}

}  // namespace headrace::serving
