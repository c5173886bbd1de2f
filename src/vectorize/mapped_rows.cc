// What a function of one row is mapped over.
#include <algorithm>
#include <limits>

#include "vectorize/vectorize.h"

namespace headrace {

StatusOr<MappedRows> RowsOf(absl::Span<const Value> elems) {
  if (elems.empty()) {
    return InvalidArgument(
        "elems must be a Tensor or (possibly nested) sequence of Tensors");
  }
  MappedRows rows;
  int64_t count = 1;
  const Value* open = nullptr;  // one that may have any number of rows
  for (const Value& v : elems) {
    if (v.rank() == 0) {
      return InvalidArgument(
          "elems must be a 1+ dimensional Tensor, not a scalar");
    }
    const int64_t n = v.rank() < 0 ? Shape::kUnknown : v.shape()[0];
    if (n < 0) open = &v;
    if (n >= 0 && n != 1 && count != 1 && n != count) {
      return InvalidArgument("Dimensions ", std::min(n, count), " and ",
                             std::max(n, count), " are not compatible");
    }
    if (n >= 0 && n != 1) count = n;
    rows.args.push_back({v, n == 1 ? Stacking::kShared : Stacking::kStacked});
  }
  if (count > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("elems have ", count, " rows, more than 2^31 - 1");
  }
  OpScope s;
  if (count == 1 && open) {
    Value sizes = s("Shape", {*open});
    rows.count =
        s("StridedSlice", {sizes, s.Int32s({0}), s.Int32s({1}), s.Int32s({1})},
          {{"shrink_axis_mask", 1}});
  } else {
    rows.count = s.Int32(static_cast<int32_t>(count));
  }
  // One row each: no reason to share, and results with a row then.
  const bool one = count == 1 && !open;
  for (RowValue& v : rows.args) {
    if (one) {
      v.rows = Stacking::kStacked;
    } else if (v.shared()) {
      v.value =
          s("Squeeze", {v.value}, {{"squeeze_dims", std::vector<int64_t>{0}}});
    }
  }
  HR_RETURN_IF_ERROR(s.status());
  return rows;
}

}  // namespace headrace
