#include "ops/array/permute.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "base/thread_pool.h"
#include "ops/array/permute_tables.h"

namespace headrace {
namespace {

using Sizes = absl::InlinedVector<int64_t, 8>;

// The array after dropping axes of size 1 and joining axes that stay
// neighbours, in y's order: sizes, and x's strides in elements.
struct Plan {
  Sizes size;
  Sizes stride;
};

Plan MakePlan(absl::Span<const int64_t> dims, absl::Span<const int32_t> order) {
  Sizes strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  Plan plan;
  for (int32_t axis : order) {
    if (dims[axis] == 1) continue;
    if (!plan.size.empty() &&
        plan.stride.back() == dims[axis] * strides[axis]) {
      plan.size.back() *= dims[axis];
      plan.stride.back() = strides[axis];
    } else {
      plan.size.push_back(dims[axis]);
      plan.stride.push_back(strides[axis]);
    }
  }
  return plan;
}

Status CheckOrder(absl::Span<const int64_t> dims,
                  absl::Span<const int32_t> order) {
  if (dims.size() != order.size()) {
    return InvalidArgument("Permute: ", order.size(), " axes for an array of ",
                           dims.size());
  }
  std::vector<bool> seen(dims.size());
  for (int32_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size()) || seen[axis]) {
      return InvalidArgument("Permute: ", absl::StrJoin(order, ","),
                             " is not a permutation");
    }
    seen[axis] = true;
  }
  return OkStatus();
}

// Where result `index` over the axes `size` begins in x.
int64_t OffsetOf(int64_t index, const Sizes& size, const Sizes& stride) {
  int64_t offset = 0;
  for (size_t i = size.size(); i-- > 0;) {
    offset += index % size[i] * stride[i];
    index /= size[i];
  }
  return offset;
}

// The last axis stays: rows are copied whole.
void CopyRows(const char* x, char* y, const Plan& plan, int size) {
  const int64_t row = plan.size.back() * size;
  Sizes sizes(plan.size.begin(), plan.size.end() - 1);
  Sizes strides(plan.stride.begin(), plan.stride.end() - 1);
  int64_t rows = 1;
  for (int64_t s : sizes) rows *= s;
  ParallelFor(rows, 5 + row * 0.05, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(y + i * row, x + OffsetOf(i, sizes, strides) * size, row);
    }
  });
}

// Another axis of x becomes the last: matrices of that axis and x's own last
// are transposed, in strips of y's rows.
void TransposeMatrices(const char* x, char* y, const Plan& plan, int size,
                       TransposeLoop loop) {
  const size_t rank = plan.size.size();
  const int64_t rows = plan.size.back(), x_stride = plan.stride.back();
  size_t inner = 0;  // the axis of y that was x's last
  while (plan.stride[inner] != 1) ++inner;
  const int64_t columns = plan.size[inner];
  int64_t y_stride = rows;
  for (size_t i = inner + 1; i + 1 < rank; ++i) y_stride *= plan.size[i];
  // The other axes: their sizes and strides in x and in y.
  Sizes sizes, x_strides, y_strides;
  int64_t matrices = 1, stride = rows;
  for (size_t i = rank - 1; i-- > 0;) {
    if (i != inner) {
      sizes.insert(sizes.begin(), plan.size[i]);
      x_strides.insert(x_strides.begin(), plan.stride[i]);
      y_strides.insert(y_strides.begin(), stride);
      matrices *= plan.size[i];
    }
    stride *= plan.size[i];
  }
  constexpr int64_t kStrip = 64;
  const int64_t strips = (columns + kStrip - 1) / kStrip;
  const double ns = rows * std::min(columns, kStrip) * (0.2 + 0.05 * size);
  ParallelFor(matrices * strips, ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t matrix = i / strips, first = i % strips;
      const int64_t last = std::min(strips, first + end - i);
      const int64_t c = first * kStrip;
      const char* from = x + (OffsetOf(matrix, sizes, x_strides) + c) * size;
      char* to = y + (OffsetOf(matrix, sizes, y_strides) + c * y_stride) * size;
      loop(from, x_stride, to, y_stride, rows,
           std::min(columns, last * kStrip) - c);
      i += last - first;
    }
  });
}

}  // namespace

Status Permute(const void* x, void* y, absl::Span<const int64_t> dims,
               absl::Span<const int32_t> order, int size) {
  HR_RETURN_IF_ERROR(CheckOrder(dims, order));
  const TransposeLoop loop =
      HR_CALL_LEVEL(ActiveCpuLevel(), FindTranspose(size));
  if (!loop) return Unimplemented("Permute: elements of ", size, " bytes");
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  if (count == 0) return OkStatus();
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(y);
  Plan plan = MakePlan(dims, order);
  if (plan.size.size() <= 1) {  // nothing moves
    ParallelFor(count, size * 0.05, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin * size, from + begin * size, (end - begin) * size);
    });
  } else if (plan.stride.back() == 1) {
    CopyRows(from, to, plan, size);
  } else {
    TransposeMatrices(from, to, plan, size, loop);
  }
  return OkStatus();
}

}  // namespace headrace
