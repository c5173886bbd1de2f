// FFT, IFFT, RFFT, IRFFT over the last one, two or three dimensions.
#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/signal/fourier.h"

namespace headrace {
namespace {

using Complex = Fourier::Complex;
using Row = std::vector<Complex>;

// Transforms dimension `d` of `work`, whose sizes are `shape`.
void TransformDimension(Row& work, const Shape& shape, int d, bool inverse) {
  const int64_t n = shape[d];
  int64_t inner = 1;
  for (int i = d + 1; i < shape.rank(); ++i) inner *= shape[i];
  const int64_t rows = static_cast<int64_t>(work.size()) / n;
  const Fourier transform(n);
  ParallelFor(rows, 20.0 * static_cast<double>(n), [&](int64_t lo, int64_t hi) {
    Row row(n), scratch;
    for (int64_t r = lo; r < hi; ++r) {
      Complex* at = work.data() + r / inner * inner * n + r % inner;
      for (int64_t k = 0; k < n; ++k) row[k] = at[k * inner];
      transform.Transform(row.data(), inverse, &scratch);
      for (int64_t k = 0; k < n; ++k) at[k * inner] = row[k];
    }
  });
}

template <typename F>
void ForEach(int64_t n, const F& f) {
  ParallelFor(n, 2, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) f(i);
  });
}

// --- Complex to complex.

template <int kRank>
Status SameShapeOfRank(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() < kRank) {
    return InvalidArgument("Shape must be at least rank ", kRank,
                           " but is rank ", c.input(0).rank());
  }
  c.set_output(0, c.input(0));
  return OkStatus();
}

template <int kRank, bool kInverse>
Status Transform(KernelContext& c) {
  const Tensor& in = c.input(0);
  const Shape& shape = in.shape();
  const int64_t n = in.num_elements();
  if (n == 0) return OkStatus();
  int64_t size = 1;
  for (int d = shape.rank() - kRank; d < shape.rank(); ++d) size *= shape[d];
  DispatchDType(in.dtype(), TypeList<complex64, complex128>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = in.data<T>();
    T* to = c.out<T>(0);
    Row work(n);
    ForEach(n, [&](int64_t i) { work[i] = Complex(from[i]); });
    for (int d = shape.rank() - kRank; d < shape.rank(); ++d) {
      TransformDimension(work, shape, d, kInverse);
    }
    const double scale = kInverse ? 1.0 / static_cast<double>(size) : 1;
    ForEach(n, [&](int64_t i) { to[i] = T(work[i] * scale); });
  });
  return OkStatus();
}

constexpr const char* kForward[] = {"FFT", "FFT2D", "FFT3D"};
constexpr const char* kBackward[] = {"IFFT", "IFFT2D", "IFFT3D"};

// The product of the last kRank sizes of `x`, as a scalar of `dtype`.
template <int kRank>
Value SizeOf(GradientContext& g, const Value& x, DType dtype) {
  Value tail =
      g("StridedSlice",
        {g.ShapeOf(x), g.Int32s({-kRank}), g.Int32s({0}), g.Int32s({1})},
        {{"end_mask", int64_t{1}}});
  return g("Cast", {g("Prod", {tail, g.Int32s({0})})}, {{"DstT", dtype}});
}

template <int kRank, bool kInverse>
Status TransformGradient(GradientContext& g) {
  const DType dtype = g.op().output_types()[0];
  const char* opposite = kInverse ? kForward[kRank - 1] : kBackward[kRank - 1];
  Value turned = g(opposite, {g.grad()});
  Value size = SizeOf<kRank>(g, g.grad(), dtype);
  g.set(0, g(kInverse ? "RealDiv" : "Mul", {turned, size}));
  return g.status();
}

#define HR_FFT(Name, rank, inverse, text)                       \
  HR_OP(Name)                                                   \
      .Input("input: Tcomplex")                                 \
      .Output("output: Tcomplex")                               \
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64") \
      .Doc(text)                                                \
      .Shape(SameShapeOfRank<rank>)                             \
      .Gradient(TransformGradient<rank, inverse>)               \
      .GradientSkips({0}, {0})                                  \
      .Cpu(Compute<Transform<rank, inverse>>)

HR_FFT(FFT, 1, false, "The Fourier transform over the last dimension.");
HR_FFT(FFT2D, 2, false, "The Fourier transform over the last 2 dimensions.");
HR_FFT(FFT3D, 3, false, "The Fourier transform over the last 3 dimensions.");
HR_FFT(IFFT, 1, true, "The inverse transform over the last dimension.");
HR_FFT(IFFT2D, 2, true, "The inverse transform over the last 2 dimensions.");
HR_FFT(IFFT3D, 3, true, "The inverse transform over the last 3 dimensions.");

// --- Real to half of the complex numbers, and back.

// The output's shape; fft_length gives the last sizes, of which the very last
// is halved for RFFT (`half`).
template <int kRank, bool kHalf>
Status LengthShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (in.known_rank() && in.rank() < kRank) {
    return InvalidArgument("Shape must be at least rank ", kRank,
                           " but is rank ", in.rank());
  }
  const Shape& lengths = c.input(1);
  if (lengths.known_rank() &&
      (lengths.rank() != 1 || (lengths[0] >= 0 && lengths[0] != kRank))) {
    return InvalidArgument("fft_length must have shape [", kRank, "]");
  }
  const Tensor* known = c.value(1);
  if (!in.known_rank()) return OkStatus();
  auto dims = in.dims();
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  for (int d = 0; d < kRank; ++d) {
    int64_t n = known ? known->data<int32_t>()[d] : -1;
    if (known && n < 0) {
      return InvalidArgument("fft_length[", d, "] must be >= 0, but got: ", n);
    }
    if (kHalf && d == kRank - 1 && n > 0) n = n / 2 + 1;
    sizes[sizes.size() - kRank + d] = n;
  }
  c.set_output(0, Shape(sizes));
  return OkStatus();
}

// Every place of a box of `kept` sizes, row by row: fn(offset in a row-major
// tensor of shape a, offset in one of shape b).
template <typename F>
void ForBox(const std::vector<int64_t>& kept, const Shape& a, const Shape& b,
            const F& fn) {
  int64_t count = 1;
  for (int64_t k : kept) count *= k;
  const int rank = static_cast<int>(kept.size());
  ForEach(count, [&](int64_t i) {
    int64_t at = 0, bt = 0, as = 1, bs = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t k = i % kept[d];
      i /= kept[d];
      at += k * as;
      bt += k * bs;
      as *= a[d];
      bs *= b[d];
    }
    fn(at, bt);
  });
}

// The lengths, checked against the input: dimension d of the transform reads
// needs(d) places of it.
template <int kRank, bool kHalfInput>
Status CheckLengths(const KernelContext& c, Shape* full) {
  const Tensor &in = c.input(0), &lengths = c.input(1);
  auto dims = in.shape().dims();
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  for (int d = 0; d < kRank; ++d) {
    const int64_t n = lengths.data<int32_t>()[d];
    const int at = in.rank() - kRank + d;
    const int64_t need = kHalfInput && d == kRank - 1 && n > 0 ? n / 2 + 1 : n;
    if (in.dim(at) != 0 && in.dim(at) < need) {
      return InvalidArgument("Input dimension ", at,
                             " must have length of at least ", need,
                             " but got: ", in.dim(at));
    }
    sizes[at] = n;
  }
  HR_ASSIGN_OR_RETURN(*full, Shape::Make(sizes));
  return OkStatus();
}

// What transforms of nothing give, whatever their length.
Status FillZeros(Tensor& out) {
  std::memset(out.raw(), 0, out.bytes());
  return OkStatus();
}

template <int kRank>
Status RealTransform(KernelContext& c) {
  const Tensor& in = c.input(0);
  Shape full;
  HR_RETURN_IF_ERROR((CheckLengths<kRank, false>(c, &full)));
  Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  if (in.num_elements() == 0) return FillZeros(out);
  Row work(full.num_elements());
  auto kept = full.dims();
  const std::vector<int64_t> box(kept.begin(), kept.end());
  DispatchDType(in.dtype(), TypeList<float, double>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = in.data<T>();
    ForBox(box, in.shape(), full,
           [&](int64_t a, int64_t b) { work[b] = from[a]; });
  });
  for (int d = full.rank() - kRank; d < full.rank(); ++d) {
    TransformDimension(work, full, d, false);
  }
  auto halves = out.shape().dims();
  DispatchDType(out.dtype(), TypeList<complex64, complex128>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.data<T>();
    ForBox({halves.begin(), halves.end()}, full, out.shape(),
           [&](int64_t a, int64_t b) { to[b] = T(work[a]); });
  });
  return OkStatus();
}

// The last dimension's other half is the conjugate of the first.
template <int kRank>
Status RealInverse(KernelContext& c) {
  const Tensor& in = c.input(0);
  Shape full;
  HR_RETURN_IF_ERROR((CheckLengths<kRank, true>(c, &full)));
  Tensor& out = c.output(0);
  const int64_t total = full.num_elements();
  if (total == 0) return OkStatus();
  if (in.num_elements() == 0) return FillZeros(out);
  const int last = full.rank() - 1;
  const int64_t n = full[last], half = n / 2 + 1;
  auto dims = full.dims();
  std::vector<int64_t> box(dims.begin(), dims.end());
  box[last] = half;
  Row work(total);
  DispatchDType(in.dtype(), TypeList<complex64, complex128>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = in.data<T>();
    ForBox(box, in.shape(), full,
           [&](int64_t a, int64_t b) { work[b] = Complex(from[a]); });
  });
  double scale = 1.0 / static_cast<double>(n);
  for (int d = full.rank() - kRank; d < last; ++d) {
    TransformDimension(work, full, d, true);
    scale /= static_cast<double>(full[d]);
  }
  ForEach(total / n, [&](int64_t r) {
    Complex* row = work.data() + r * n;
    for (int64_t k = half; k < n; ++k) row[k] = std::conj(row[n - k]);
    row[0] = row[0].real();
    if (n % 2 == 0) row[n / 2] = row[n / 2].real();
  });
  TransformDimension(work, full, last, true);
  DispatchDType(out.dtype(), TypeList<float, double>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.data<T>();
    ForEach(total,
            [&](int64_t i) { to[i] = static_cast<T>(work[i].real() * scale); });
  });
  return OkStatus();
}

// The last of the lengths, as a scalar.
template <int kRank>
Value LastLength(GradientContext& g) {
  return g("GatherV2", {g.input(1), g.Int32(kRank - 1), g.Int32(0)});
}

// The real part of the sum of grad_k exp(2 pi i j k / n): half a spectrum,
// filled up with zeros and transformed back.
template <int kRank>
Status RealTransformGradient(GradientContext& g) {
  const Value grad = g.grad();
  const DType real = g.op().input_types()[0];
  Value rank = g("Rank", {grad});
  Value have = g("GatherV2",
                 {g.ShapeOf(grad), g("Sub", {rank, g.Int32(1)}), g.Int32(0)});
  Value more = g("Sub", {LastLength<kRank>(g), have});
  Value after =
      g("ConcatV2",
        {g("Fill", {g("ExpandDims", {g("Sub", {rank, g.Int32(1)}), g.Int32(0)}),
                    g.Int32(0)}),
         g("ExpandDims", {more, g.Int32(0)}), g.Int32(0)});
  Value amounts =
      g("Pack", {g("ZerosLike", {after}), after}, {{"axis", int64_t{1}}});
  Value back = g(kBackward[kRank - 1], {g("Pad", {grad, amounts})});
  Value sum = g("Real", {back}, {{"Tout", real}});
  g.set(0, g("Mul", {sum, SizeOf<kRank>(g, back, real)}));
  return g.status();
}

constexpr const char* kReal[] = {"RFFT", "RFFT2D", "RFFT3D"};

// Every place but the first and, for even lengths, the last stands for two.
template <int kRank>
Status RealInverseGradient(GradientContext& g) {
  const DType real = g.op().output_types()[0];
  const DType complex = g.op().input_types()[0];
  Value grad = g.grad();
  Value one = g.Int32(1);
  Value odd = g("FloorMod", {LastLength<kRank>(g), g.Int32(2)});
  Value have =
      g("GatherV2", {g.ShapeOf(g.input(0)),
                     g("Sub", {g("Rank", {g.input(0)}), one}), g.Int32(0)});
  auto fill = [&](Value count, double v) {
    return g("Fill", {g("ExpandDims", {count, g.Int32(0)}), g.Scalar(real, v)});
  };
  Value twice = g("AddV2", {g("Sub", {have, g.Int32(2)}), odd});
  Value mask = g("ConcatV2", {fill(one, 1), fill(twice, 2),
                              fill(g("Sub", {one, odd}), 1), g.Int32(0)});
  Value scale = g("RealDiv", {mask, SizeOf<kRank>(g, grad, real)});
  Value turned =
      g(kReal[kRank - 1], {grad, g.input(1)}, {{"Tcomplex", complex}});
  g.set(0, g("Mul", {turned, g("Cast", {scale}, {{"DstT", complex}})}));
  return g.status();
}

#define HR_RFFT(Name, rank, text)                               \
  HR_OP(Name)                                                   \
      .Input("input: Treal")                                    \
      .Input("fft_length: int32")                               \
      .Output("output: Tcomplex")                               \
      .Attr("Treal: {float, double} = DT_FLOAT")                \
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64") \
      .Doc(text)                                                \
      .Shape(LengthShape<rank, true>)                           \
      .Gradient(RealTransformGradient<rank>)                    \
      .GradientSkips({0}, {0})                                  \
      .Cpu(Compute<RealTransform<rank>>);                       \
  HR_OP(I##Name)                                                \
      .Input("input: Tcomplex")                                 \
      .Input("fft_length: int32")                               \
      .Output("output: Treal")                                  \
      .Attr("Treal: {float, double} = DT_FLOAT")                \
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64") \
      .Doc("The inverse of " #Name ".")                         \
      .Shape(LengthShape<rank, false>)                          \
      .Gradient(RealInverseGradient<rank>)                      \
      .GradientSkips({}, {0})                                   \
      .Cpu(Compute<RealInverse<rank>>)

HR_RFFT(RFFT, 1, "Half the transform of real numbers, last dimension.");
HR_RFFT(RFFT2D, 2, "Half the transform of real numbers, last 2 dimensions.");
HR_RFFT(RFFT3D, 3, "Half the transform of real numbers, last 3 dimensions.");

}  // namespace
}  // namespace headrace
