#include "ops/ragged/splits.h"

namespace headrace {

Status CheckSplits(const Tensor& splits, int64_t values) {
  if (splits.rank() != 1 || splits.num_elements() == 0) {
    return InvalidArgument(
        "Invalid row splits: expected a vector that is not "
        "empty, got shape ",
        splits.shape());
  }
  const int64_t n = splits.num_elements();
  if (splits.IntAt(0) != 0) {
    return InvalidArgument("First value of ragged splits must be 0, got ",
                           splits.IntAt(0));
  }
  for (int64_t i = 1; i < n; ++i) {
    if (splits.IntAt(i) < splits.IntAt(i - 1)) {
      return InvalidArgument(
          "Ragged splits should have increasing values: "
          "got ",
          splits.IntAt(i - 1), " before ", splits.IntAt(i));
    }
  }
  if (values >= 0 && splits.IntAt(n - 1) != values) {
    return InvalidArgument(
        "Final value of ragged splits must match the "
        "length of the corresponding ragged values: got ",
        splits.IntAt(n - 1), " for ", values);
  }
  return OkStatus();
}

Status CheckNestedSplits(absl::Span<const Tensor> splits,
                         const Tensor& values) {
  if (values.rank() < 1) {
    return InvalidArgument("ragged values must have at least one dimension");
  }
  for (size_t i = 0; i < splits.size(); ++i) {
    const bool last = i + 1 == splits.size();
    if (!last && splits[i + 1].rank() != 1) {
      return InvalidArgument("row splits must be vectors, got shape ",
                             splits[i + 1].shape());
    }
    HR_RETURN_IF_ERROR(CheckSplits(
        splits[i], last ? values.dim(0) : splits[i + 1].num_elements() - 1));
  }
  return OkStatus();
}

Status SetSplits(KernelContext& c, int i, absl::Span<const int64_t> splits) {
  HR_RETURN_IF_ERROR(c.Allocate(i, Shape{static_cast<int64_t>(splits.size())}));
  Tensor& out = c.output(i);
  for (size_t k = 0; k < splits.size(); ++k) {
    if (out.dtype() == DType::kInt32 && splits[k] > INT32_MAX) {
      return InvalidArgument("row splits do not fit in int32");
    }
    SetInt(out, static_cast<int64_t>(k), splits[k]);
  }
  return OkStatus();
}

}  // namespace headrace
