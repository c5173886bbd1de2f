// One dimension of a tensor transformed: what FFT, FFT2D and FFTND share.
#pragma once

#include <complex>
#include <type_traits>
#include <vector>

#include "op/op.h"
#include "ops/signal/fourier.h"

namespace headrace {

// How many T an element takes.
template <typename T, typename E>
constexpr int64_t kParts = sizeof(E) / sizeof(T);

// Row-major steps of `shape`, for elements of `parts` T.
std::vector<int64_t> StepsOf(const Shape& shape, int64_t parts);

inline std::vector<int64_t> SizesOf(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

// InvalidArgument unless both sides of a real transform are of one precision.
Status CheckTransformTypes(const char* way, DType in, DType out, DType real,
                           DType complex);

// One side of a transform: a tensor's elements E and the shape they lie in.
template <typename E>
struct Side {
  E* data;
  const Shape& shape;
};

// Transforms dimension `d`, to length n, of the rows that `box` counts (its
// own size of d does not matter): the first places of both sides. T is float
// or double; From and To are T or std::complex<T>, one of them real where they
// differ. Real rows must be dense, so `d` is the last dimension then.
template <typename T, typename From, typename To>
Status TransformDimension(const std::vector<int64_t>& box, int d, int64_t n,
                          Side<const From> from, Side<To> to, bool inverse,
                          double scale = 1) {
  constexpr bool kReal = !std::is_same_v<From, To>;
  HR_ASSIGN_OR_RETURN(auto transform, Fourier<T>::Get(n, kReal));
  const auto as = StepsOf(from.shape, kParts<T, From>);
  const auto bs = StepsOf(to.shape, kParts<T, To>);
  const int rank = static_cast<int>(box.size());
  auto place = [&](int64_t r, int64_t* a, int64_t* b) {
    *a = *b = 0;
    for (int i = rank - 1; i >= 0; --i) {
      if (i == d) continue;
      const int64_t at = r % box[i];
      r /= box[i];
      *a += at * as[i];
      *b += at * bs[i];
    }
  };
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= i == d ? 1 : box[i];
  return transform->Run({.from = reinterpret_cast<const T*>(from.data),
                         .to = reinterpret_cast<T*>(to.data),
                         .count = count,
                         .from_step = as[d],
                         .to_step = bs[d],
                         .place = place,
                         .inverse = inverse,
                         .scale = static_cast<T>(scale)});
}

}  // namespace headrace
