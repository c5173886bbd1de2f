#include "tensor/shape.h"

#include <algorithm>

namespace headrace {

StatusOr<Shape> Shape::Make(absl::Span<const int64_t> dims,
                            bool allow_unknown) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("Shape has rank ", dims.size(), ", the most is ",
                           kMaxRank);
  }
  int64_t count = 1, by = 0;  // the first factor that is too much
  for (int64_t d : dims) {
    if (d < 0 && !(allow_unknown && d == kUnknown)) {
      return InvalidArgument("Dimension ", d,
                             " must be >= ", allow_unknown ? -1 : 0);
    }
    // Zeros are passed over: strides are products of the other sizes, which
    // must fit as well.
    if (d <= 0 || by != 0) continue;
    int64_t more;
    if (MultiplyChecked(count, d, &more)) {
      count = more;
    } else {
      by = d;
    }
  }
  if (by != 0) {
    return InvalidArgument("Shape ", Shape(dims).ToString(),
                           " is too large (more than 2**63 - 1 entries): "
                           "Encountered overflow when multiplying ",
                           count, " with ", by);
  }
  return Shape(dims);
}

Shape Shape::Sub(int begin, int end) const {
  int n = rank();
  if (!known_rank_) return *this;
  if (begin < 0) begin += n;
  if (end < 0) end += n;
  begin = std::clamp(begin, 0, n);
  end = std::clamp(end, begin, n);
  return Shape(dims().subspan(begin, end - begin));
}

Shape Shape::Concat(const Shape& tail) const {
  if (!known_rank_ || !tail.known_rank_) return UnknownRank();
  Shape out = *this;
  out.dims_.insert(out.dims_.end(), tail.dims_.begin(), tail.dims_.end());
  return out;
}

[[gnu::hot]] bool Shape::CompatibleWith(const Shape& o) const {
  if (!known_rank_ || !o.known_rank_) return true;
  if (dims_.size() != o.dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && o.dims_[i] >= 0 && dims_[i] != o.dims_[i]) {
      return false;
    }
  }
  return true;
}

std::string Shape::ToString() const {
  if (!known_rank_) return "<unknown>";
  std::string out = "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (i) out += ',';
    out += dims_[i] < 0 ? std::string("?") : std::to_string(dims_[i]);
  }
  return out + "]";
}

StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b) {
  if (!a.known_rank()) return b;
  if (!b.known_rank()) return a;
  if (a.rank() != b.rank()) {
    return InvalidArgument("Shapes must be equal rank, but are ", a.rank(),
                           " and ", b.rank());
  }
  Shape out = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] < 0) {
      out.set_dim(i, b[i]);
    } else if (b[i] >= 0 && a[i] != b[i]) {
      return InvalidArgument("Dimension ", i,
                             " in both shapes must be equal, but are ", a[i],
                             " and ", b[i], ". Shapes are ", a.ToString(),
                             " and ", b.ToString(), ".");
    }
  }
  return out;
}

[[gnu::hot]] StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return Shape::UnknownRank();
  int rank = std::max(a.rank(), b.rank());
  Shape out = Shape::UnknownOfRank(rank);
  for (int i = 0; i < rank; ++i) {
    int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    int64_t d;
    if (da < 0 || db < 0) {
      // An unknown against more than one must be that (or one); against one
      // or another unknown nothing is decided.
      d = da > 1 ? da : db > 1 ? db : Shape::kUnknown;
      if (da == 1 || db == 1) d = da == 1 ? db : da;
    } else if (da == db || db == 1) {
      d = da;
    } else if (da == 1) {
      d = db;
    } else {
      return InvalidArgument("Incompatible shapes: ", a.ToString(), " vs. ",
                             b.ToString());
    }
    out.set_dim(i, d);
  }
  return out;
}

}  // namespace headrace
