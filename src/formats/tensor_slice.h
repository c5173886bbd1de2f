// Boxes in a tensor: how the partitions of a variable are named, stored and
// put together again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace tensorflow {
class TensorSliceProto;
}

namespace headrace {

// A box: per dimension where it starts and how long it is. kWhole as length
// (start 0) is the whole dimension, whatever its size; it is kept as written,
// since stored keys tell the two forms apart.
struct TensorSlice {
  static constexpr int64_t kWhole = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kWhole;
    bool operator==(const Extent&) const = default;
  };
  std::vector<Extent> extents;

  bool operator==(const TensorSlice&) const = default;

  // The box that is all of a tensor of that rank.
  static TensorSlice Whole(int rank);

  // "0,3:-": start and length, "-" for a whole dimension; "" for a scalar.
  static StatusOr<TensorSlice> Parse(StringView text);
  std::string ToString() const;

  // An extent without length is whole. Starts and lengths are checked.
  static StatusOr<TensorSlice> FromProto(
      const tensorflow::TensorSliceProto& proto);
  void ToProto(tensorflow::TensorSliceProto* proto) const;

  // With every length given; InvalidArgument when the box does not lie in a
  // tensor of size `dims`.
  StatusOr<TensorSlice> Resolve(absl::Span<const int64_t> dims) const;
};

// The product of the sizes; InvalidArgument when one is negative or the product
// is over int64.
StatusOr<int64_t> CountElements(absl::Span<const int64_t> dims);

// The lengths of a resolved slice.
std::vector<int64_t> SliceDims(const TensorSlice& resolved);

// What save and restore ops are given of each tensor, e.g. "4 3 0,2:-": the
// full shape, then the slice. "" says: the whole tensor.
struct ShapeAndSlice {
  bool whole = true;
  std::vector<int64_t> dims;  // of the full tensor
  TensorSlice slice;          // resolved
};
StatusOr<ShapeAndSlice> ParseShapeAndSlice(StringView text);

// The key of a stored slice: ordered code of 0, the tensor's name, the rank,
// and start and length of each extent (length -1 for a whole one).
std::string EncodeSliceKey(StringView name, const TensorSlice& slice);
Status DecodeSliceKey(StringView key, std::string* name, TensorSlice* slice);

// Calls run(from, to, count) for each run of elements that two boxes of one
// tensor have in common: `count` elements that lie one after the other, at
// index `from` in `source`'s elements and at index `to` in `target`'s (both
// row-major). Both must be resolved and of one rank. Returns the number of
// elements in common.
int64_t ForEachCommonRun(
    const TensorSlice& source, const TensorSlice& target,
    absl::FunctionRef<void(int64_t from, int64_t to, int64_t count)> run);

}  // namespace headrace
