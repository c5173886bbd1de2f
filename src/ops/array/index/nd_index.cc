#include "ops/array/index/nd_index.h"

#include "base/thread_pool.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

using NdIndexTypes = TypeList<int32_t, int64_t, int16_t, uint16_t>;

}  // namespace

Status BadIndex(const Tensor& indices, int64_t at, int64_t limit) {
  std::string place;
  int64_t rest = at;
  for (int d = indices.rank() - 1; d >= 0; --d) {
    // The last dimension runs fastest, so the digits come out from the last to
    // the first.
    place =
        absl::StrCat(rest % indices.dim(d), place.empty() ? "" : ",", place);
    rest /= indices.dim(d);
  }
  return InvalidArgument("indices", indices.rank() == 0 ? "" : "[", place,
                         indices.rank() == 0 ? "" : "]", " = ",
                         IndexAt(indices, at), " is not in [0, ", limit, ")");
}

StatusOr<BadIndices> BadIndicesPolicy(const ResolvedOp& op) {
  const std::string& policy = op.string_attr("bad_indices_policy");
  if (policy == "IGNORE") return BadIndices::kIgnore;
  // DEFAULT stands for what the device does by nature, and a CPU refuses.
  if (policy.empty() || policy == "DEFAULT" || policy == "ERROR") {
    return BadIndices::kError;
  }
  return InvalidArgument("Unknown bad indices handling attribute: ", policy);
}

std::vector<int64_t> PlaceOffsets(const Tensor& indices, const Shape& shape,
                                  int64_t* first_bad) {
  const int last = indices.rank() - 1;
  const int64_t depth = indices.dim(last);
  const int64_t n = indices.shape().Product(0, last);
  const auto strides = RowMajorStrides(shape.dims());
  std::vector<int64_t> offsets(n);
  DispatchDType(indices.dtype(), NdIndexTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* ids = indices.data<T>();
    ParallelFor(n, 1.0 * depth + 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t at = 0;
        bool inside = true;
        for (int64_t d = 0; d < depth; ++d) {
          const auto id = static_cast<int64_t>(ids[i * depth + d]);
          // One unsigned comparison checks both ends, without a branch in the
          // loop.
          inside &= static_cast<uint64_t>(id) <
                    static_cast<uint64_t>(shape[static_cast<int>(d)]);
          // Unsigned, as a place outside may overflow.
          at = static_cast<int64_t>(static_cast<uint64_t>(at) +
                                    static_cast<uint64_t>(id) *
                                        static_cast<uint64_t>(strides[d]));
        }
        offsets[i] = inside ? at : -1;
      }
    });
  });
  *first_bad = -1;
  // The first bad place is searched for afterwards, so that the message is the
  // same whatever the threads' order.
  for (int64_t i = 0; i < n; ++i) {
    if (offsets[i] < 0) {
      *first_bad = i;
      break;
    }
  }
  return offsets;
}

std::string PlaceText(const Tensor& indices, int64_t at) {
  const int last = indices.rank() - 1;
  const int64_t depth = indices.dim(last);
  std::string where, what;
  int64_t rest = at;
  for (int d = last - 1; d >= 0; --d) {
    where =
        absl::StrCat(rest % indices.dim(d), where.empty() ? "" : ",", where);
    rest /= indices.dim(d);
  }
  DispatchDType(indices.dtype(), NdIndexTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t d = 0; d < depth; ++d) {
      absl::StrAppend(&what, d ? ", " : "",
                      int64_t{indices.data<T>()[at * depth + d]});
    }
  });
  return absl::StrCat("indices", last > 0 ? "[" : "", where,
                      last > 0 ? "]" : "", " = [", what, "]");
}

}  // namespace headrace
