#include "op/shape_refusal.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace headrace {

ShapeRefusal DimensionsDiffer(int64_t a, int64_t b) {
  return {absl::StrCat("Dimensions must be equal, but are ", a, " and ", b)};
}

ShapeRefusal DimensionIsNot(int64_t must, int64_t is) {
  return {absl::StrCat("Dimension must be ", must, " but is ", is)};
}

ShapeRefusal RankIsNot(int must, int is) {
  return {absl::StrCat("Shape must be rank ", must, " but is rank ", is)};
}

ShapeRefusal RankIsLess(int64_t must, int is) {
  return {
      absl::StrCat("Shape must be at least rank ", must, " but is rank ", is)};
}

ShapeRefusal NotDivisible(int64_t by, int64_t is) {
  return {absl::StrCat("Dimension size must be evenly divisible by ", by,
                       " but is ", is)};
}

ShapeRefusal NotBroadcast(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return {};
  const int rank = std::max(a.rank(), b.rank());
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    if (da >= 0 && db >= 0 && da != db && da != 1 && db != 1) {
      return DimensionsDiffer(da, db);
    }
  }
  return {};
}

ShapeRefusal NotMerged(const Shape& a, const Shape& b) {
  const StatusOr<Shape> merged = MergeShapes(a, b);
  if (merged.ok()) return {};
  return {std::string(merged.status().message())};
}

}  // namespace headrace
