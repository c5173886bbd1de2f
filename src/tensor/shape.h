// Shapes of tensors, with unknown sizes and unknown rank.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace headrace {

// A list of dimension sizes; -1 is an unknown size, and the rank itself may be
// unknown. A value type. Sizes from users or files enter through Make, which
// checks them; the constructors trust their arguments.
class Shape {
 public:
  static constexpr int64_t kUnknown = -1;
  // Upstream's limit: there, 255 in a byte means an unknown rank.
  static constexpr int kMaxRank = 254;

  Shape() = default;  // a scalar's
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {}
  static Shape UnknownRank() {
    Shape s;
    s.known_rank_ = false;
    return s;
  }
  static Shape UnknownOfRank(int rank) {
    Shape s;
    s.dims_.assign(rank, kUnknown);
    return s;
  }
  // InvalidArgument for sizes below -1 (or -1 unless `allow_unknown`), a rank
  // above kMaxRank, or more than 2^63-1 elements.
  static StatusOr<Shape> Make(absl::Span<const int64_t> dims,
                              bool allow_unknown = false);

  bool known_rank() const { return known_rank_; }
  // -1 when unknown.
  int rank() const { return known_rank_ ? static_cast<int>(dims_.size()) : -1; }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t operator[](int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  void set_dim(int i, int64_t size) { dims_[i] = size; }
  void AddDim(int64_t size) { dims_.push_back(size); }
  void InsertDim(int i, int64_t size) { dims_.insert(dims_.begin() + i, size); }
  void RemoveDim(int i) { dims_.erase(dims_.begin() + i); }

  // True when the rank and every size are known.
  bool fully_known() const {
    if (!known_rank_) return false;
    for (int64_t d : dims_) {
      if (d < 0) return false;
    }
    return true;
  }
  // Product of the sizes; only for fully known shapes.
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }
  // Product of dims [begin, end).
  int64_t Product(int begin, int end) const {
    int64_t n = 1;
    for (int i = begin; i < end; ++i) n *= dims_[i];
    return n;
  }
  bool IsScalar() const { return known_rank_ && dims_.empty(); }
  bool IsVector() const { return known_rank_ && dims_.size() == 1; }
  bool IsMatrix() const { return known_rank_ && dims_.size() == 2; }

  // Dims [begin, end); end < 0 counts from the end, as Python slices do.
  Shape Sub(int begin, int end) const;
  Shape Concat(const Shape& tail) const;

  // Same rank and sizes, unknowns included.
  bool operator==(const Shape& o) const {
    return known_rank_ == o.known_rank_ && dims_ == o.dims_;
  }
  bool operator!=(const Shape& o) const { return !(*this == o); }
  // True when some fully known shape satisfies both.
  bool CompatibleWith(const Shape& o) const;

  // "[2,3]", "[?,3]", "<unknown>": upstream's form in messages.
  std::string ToString() const;

 private:
  absl::InlinedVector<int64_t, 6> dims_;
  bool known_rank_ = true;
};

template <typename Sink>
void AbslStringify(Sink& sink, const Shape& s) {
  sink.Append(s.ToString());
}

// a * b into *out; false when it overflows. Both must be >= 0.
inline bool MultiplyChecked(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// The count of elements of a shape that is fully known; false when it
// overflows.
inline bool CountElements(const Shape& s, int64_t* count) {
  *count = 1;
  for (int64_t d : s.dims()) {
    if (!MultiplyChecked(*count, d, count)) return false;
  }
  return true;
}

// What both shapes say together; InvalidArgument when they contradict.
StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);
// NumPy's rule; unknown where not decided. InvalidArgument "Incompatible
// shapes: [2,3] vs. [4]" when none exists.
StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace headrace
