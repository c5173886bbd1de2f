#include "ops/state/scatter.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

template <typename T>
constexpr bool kComplex =
    std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;
template <typename T>
constexpr bool kNumber = true;
template <>
constexpr bool kNumber<bool> = false;
template <>
constexpr bool kNumber<std::string> = false;
template <>
constexpr bool kNumber<Variant> = false;
template <>
constexpr bool kNumber<ResourceHandle> = false;

using ScatterTypes =
    TypeList<float, double, int32_t, int64_t, half, bfloat16, complex64,
             complex128, int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t,
             bool, std::string, Variant>;

template <typename T>
constexpr bool Supports(ScatterKind kind) {
  if (kind == ScatterKind::kUpdate) return true;
  if (!kNumber<T>) return false;
  return !kComplex<T> ||
         (kind != ScatterKind::kMin && kind != ScatterKind::kMax);
}

// x (kind)= y; integers wrap around, division by zero was refused before.
template <ScatterKind kind, typename T>
T Combine(const T& x, const T& y) {
  if constexpr (kind == ScatterKind::kUpdate) {
    return y;
  } else if constexpr (kind == ScatterKind::kMin) {
    return y < x ? y : x;
  } else if constexpr (kind == ScatterKind::kMax) {
    return x < y ? y : x;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    // Wide enough that no product is computed in a signed int.
    using W = std::common_type_t<U, unsigned>;
    W a = static_cast<U>(x), b = static_cast<U>(y);
    if constexpr (kind == ScatterKind::kAdd) return static_cast<T>(a + b);
    if constexpr (kind == ScatterKind::kSub) return static_cast<T>(a - b);
    if constexpr (kind == ScatterKind::kMul) return static_cast<T>(a * b);
    if constexpr (std::is_signed_v<T>) {
      // The least number over -1 overflows and traps on x86.
      if (y == -1) return static_cast<T>(W{0} - a);
    }
    return static_cast<T>(x / y);
  } else {
    if constexpr (kind == ScatterKind::kAdd) return T(x + y);
    if constexpr (kind == ScatterKind::kSub) return T(x - y);
    if constexpr (kind == ScatterKind::kMul) return T(x * y);
    return T(x / y);
  }
}

// Where the updates go: slice k of `updates` to element offsets[k]; a negative
// offset is skipped.
struct Targets {
  absl::InlinedVector<int64_t, 16> offsets;
  int64_t slice = 1;           // elements a slice
  bool scalar_update = false;  // one element stands for all
};

template <ScatterKind kind, typename T>
Status Apply(const Targets& targets, const Tensor& updates, Tensor& value) {
  const T* from = updates.data<T>();
  T* to = value.data<T>();
  if constexpr (kind == ScatterKind::kDiv && std::is_integral_v<T>) {
    // Looked for before the first row changes.
    for (int64_t i = 0; i < updates.num_elements(); ++i) {
      if (from[i] == 0) return InvalidArgument("Integer division by zero");
    }
  }
  // One after another, as a place may be named twice and the last (or all of
  // them) count.
  for (size_t k = 0; k < targets.offsets.size(); ++k) {
    if (targets.offsets[k] < 0) continue;
    T* row = to + targets.offsets[k];
    const T* by = targets.scalar_update ? from : from + k * targets.slice;
    const int64_t step = targets.scalar_update ? 0 : 1;
    if (kind == ScatterKind::kUpdate && step == 1) {
      std::copy_n(by, targets.slice, row);
      continue;
    }
    for (int64_t i = 0; i < targets.slice; ++i) {
      row[i] = Combine<kind, T>(row[i], by[i * step]);
    }
  }
  return OkStatus();
}

template <typename T>
Status ApplyKind(ScatterKind kind, const Targets& targets,
                 const Tensor& updates, Tensor& value) {
  using K = ScatterKind;
  if (kind == K::kUpdate) return Apply<K::kUpdate, T>(targets, updates, value);
  if constexpr (kNumber<T>) {
    if (kind == K::kAdd) return Apply<K::kAdd, T>(targets, updates, value);
    if (kind == K::kSub) return Apply<K::kSub, T>(targets, updates, value);
    if (kind == K::kMul) return Apply<K::kMul, T>(targets, updates, value);
    if (kind == K::kDiv) return Apply<K::kDiv, T>(targets, updates, value);
    if constexpr (!kComplex<T>) {
      if (kind == K::kMin) return Apply<K::kMin, T>(targets, updates, value);
      if (kind == K::kMax) return Apply<K::kMax, T>(targets, updates, value);
    }
  }
  return Unimplemented("no such scatter for ", DTypeName(value.dtype()));
}

Status ApplyTo(ScatterKind kind, const Targets& targets, const Tensor& updates,
               Tensor& value) {
  Status status = Unimplemented("no scatter for ", DTypeName(value.dtype()));
  DispatchDType(value.dtype(), ScatterTypes{}, [&](auto tag) {
    status =
        ApplyKind<typename decltype(tag)::type>(kind, targets, updates, value);
  });
  return status;
}

Status CheckRowShapes(const Tensor& indices, const Tensor& updates,
                      const Tensor& value) {
  if (value.rank() < 1) {
    return InvalidArgument("params must be at least 1-D, got shape ",
                           value.shape());
  }
  // One number may stand for all rows.
  if (updates.rank() == 0) return OkStatus();
  if (updates.shape() !=
      indices.shape().Concat(value.shape().Sub(1, value.rank()))) {
    if (updates.rank() >= indices.rank() &&
        updates.shape().Sub(0, indices.rank()) != indices.shape()) {
      return InvalidArgument("The shape of indices (", indices.shape(),
                             ") must be a prefix of the shape of updates (",
                             updates.shape(), ")");
    }
    return InvalidArgument(
        "Must have updates.shape = indices.shape + params.shape[1:] or "
        "updates.shape = [], got updates.shape ",
        updates.shape(), ", indices.shape ", indices.shape(), ", params.shape ",
        value.shape());
  }
  return OkStatus();
}

// indices: [..., depth]; updates: indices.shape[:-1] + value.shape[depth:].
Status CheckSliceShapes(const Tensor& indices, const Tensor& updates,
                        const Tensor& value) {
  if (value.rank() < 1) {
    return InvalidArgument("Output must be at least 1-D, got shape: ",
                           value.shape());
  }
  if (indices.rank() < 1) {
    return InvalidArgument("Indices shape must have rank at least one. Found:",
                           indices.shape());
  }
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  if (updates.rank() < outer ||
      updates.shape().Sub(0, outer) != indices.shape().Sub(0, outer)) {
    return InvalidArgument("Dimensions [0,", outer,
                           ") of indices[shape=", indices.shape(),
                           "] must match dimensions [0,", outer,
                           ") of updates[shape=", updates.shape(), "]");
  }
  if (depth > value.rank() ||
      updates.shape().Sub(outer, updates.rank()) !=
          value.shape().Sub(static_cast<int>(depth), value.rank())) {
    return InvalidArgument(
        "Dimensions [", depth, ",", value.rank(),
        ") of input[shape=", value.shape(), "] must match dimensions [", outer,
        ",", updates.rank(), ") of updates[shape=", updates.shape(), "]");
  }
  return OkStatus();
}

}  // namespace

Status ScatterRows(ScatterKind kind, const Tensor& indices,
                   const Tensor& updates, Tensor& value) {
  HR_RETURN_IF_ERROR(CheckRowShapes(indices, updates, value));
  Targets targets;
  targets.slice = value.shape().Product(1, value.rank());
  targets.scalar_update = updates.rank() == 0;
  const int64_t n = indices.num_elements(), rows = value.dim(0);
  targets.offsets.resize(n);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = indices.IntAt(i);
    if (at < 0 || at >= rows) {
      return InvalidArgument("indices[", i, "] = ", at, " is not in [0, ", rows,
                             ")");
    }
    targets.offsets[i] = at * targets.slice;
  }
  return ApplyTo(kind, targets, updates, value);
}

Status ScatterSlices(ScatterKind kind, const Tensor& indices,
                     const Tensor& updates, bool ignore_bad, Tensor& value) {
  HR_RETURN_IF_ERROR(CheckSliceShapes(indices, updates, value));
  const int outer = indices.rank() - 1;
  const int depth = static_cast<int>(indices.dim(outer));
  const int64_t n = indices.shape().Product(0, outer);
  Targets targets;
  targets.slice = value.shape().Product(depth, value.rank());
  targets.offsets.resize(n);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    bool good = true;
    for (int d = 0; d < depth; ++d) {
      int64_t k = indices.IntAt(i * depth + d);
      good &= k >= 0 && k < value.dim(d);
      // Not computed on once the place is bad, as the product could overflow.
      at = good ? at * value.dim(d) + k : 0;
    }
    if (!good && !ignore_bad) {
      std::vector<int64_t> bad(depth);
      for (int d = 0; d < depth; ++d) bad[d] = indices.IntAt(i * depth + d);
      return InvalidArgument("indices[", i, "] = [", absl::StrJoin(bad, ", "),
                             "] does not index into shape ", value.shape());
    }
    targets.offsets[i] = good ? at * targets.slice : -1;
  }
  return ApplyTo(kind, targets, updates, value);
}

bool ScatterSupports(ScatterKind kind, DType dtype) {
  bool can = false;
  DispatchDType(dtype, ScatterTypes{}, [&](auto tag) {
    can = Supports<typename decltype(tag)::type>(kind);
  });
  return can;
}

}  // namespace headrace
