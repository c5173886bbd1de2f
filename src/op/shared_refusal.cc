#include "op/shared_refusal.h"

#include "absl/strings/str_cat.h"

namespace headrace {

ShapeRefusal NotAllMerged(const ShapeContext& c) {
  Shape all = c.input(c.num_inputs() - 1);
  for (int i = c.num_inputs() - 2; i >= 0; --i) {
    StatusOr<Shape> merged = MergeShapes(c.input(i), all);
    if (!merged.ok()) {
      return {absl::StrCat(merged.status().message(), "\n\tFrom merging shape ",
                           i, " with other shapes.")};
    }
    all = *std::move(merged);
  }
  return {};
}

ShapeRefusal NotPrefixed(const Shape& s, const Shape& prefix) {
  if (!s.known_rank() || !prefix.known_rank()) return {};
  if (s.rank() < prefix.rank()) return RankIsLess(prefix.rank(), s.rank());
  for (int i = 0; i < prefix.rank(); ++i) {
    if (s[i] >= 0 && prefix[i] >= 0 && s[i] != prefix[i]) {
      return DimensionsDiffer(s[i], prefix[i]);
    }
  }
  return {};
}

ShapeRefusal NotScalar(const Shape& s, uint32_t values) {
  return {absl::StrCat("Input must be scalar but has rank ", s.rank()), values};
}

ShapeRefusal NegativeSize(int input, int64_t size) {
  return {absl::StrCat("Dimension size, given by scalar input ", input,
                       ", must be non-negative but is ", size),
          1u << input};
}

Status WrongReductionAxis(ShapeContext& c, int64_t axis, int rank) {
  return c.Refuse({absl::StrCat("Invalid reduction dimension ", axis,
                                " for input with ", rank, " dimensions."),
                   2},
                  InvalidArgument("Invalid reduction dimension (", axis,
                                  " for input with ", rank, " dimension(s)"));
}

Status Refuse(ShapeContext* c, ShapeRefusal in_graph, Status rule) {
  return c ? c->Refuse(std::move(in_graph), std::move(rule)) : rule;
}

}  // namespace headrace
