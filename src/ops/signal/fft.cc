// FFT, IFFT, RFFT, IRFFT over the last one, two or three dimensions.
#include <cstring>

#include "op/op.h"
#include "op/vectorize.h"
#include "ops/signal/transform_dimension.h"

namespace headrace {
namespace {

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
  if (in.num_elements() == 0) return OkStatus();
  double size = 1;
  const int first = shape.rank() - kRank, last = shape.rank() - 1;
  for (int d = first; d <= last; ++d) size *= static_cast<double>(shape[d]);
  Status status;
  DispatchDType(in.dtype(), TypeList<complex64, complex128>{}, [&](auto tag) {
    using E = typename decltype(tag)::type;
    using T = typename E::value_type;
    E* to = c.out<E>(0);
    // The first pass multiplies it in: a pass of its own would go over the
    // output once more.
    double scale = kInverse ? 1 / size : 1;
    for (int d = last; d >= first && status.ok(); --d, scale = 1) {
      const E* from = d == last ? in.data<E>() : to;
      status = TransformDimension<T, E, E>(SizesOf(shape), d, shape[d],
                                           {from, shape}, {to, shape}, kInverse,
                                           scale);
    }
  });
  return status;
}

constexpr const char* kForward[] = {"FFT", "FFT2D", "FFT3D"};
constexpr const char* kBackward[] = {"IFFT", "IFFT2D", "IFFT3D"};
constexpr const char* kUseForward[] = {"Use FFT", "Use FFT2D", "Use FFT3D"};
constexpr const char* kUseBackward[] = {"Use IFFT", "Use IFFT2D", "Use IFFT3D"};

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
  // The transform is linear; its conjugate transpose is the inverse without the
  // inverse's 1 / n.
  Value turned = g(opposite, {g.grad()});
  Value size = SizeOf<kRank>(g, g.grad(), dtype);
  g.set(0, g(kInverse ? "RealDiv" : "Mul", {turned, size}));
  return g.status();
}

template <int kRank, bool kInverse>
OpBuilder FftOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("input: Tcomplex")
      .Output("output: Tcomplex")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .Doc(doc)
      .Shape(SameShapeOfRank<kRank>)
      .Gradient(TransformGradient<kRank, kInverse>)
      .GradientSkips({0}, {0})
      .Vectorize(VectorizeFirst)
      .Cpu(Compute<Transform<kRank, kInverse>>);
  return b;
}

[[maybe_unused]] const OpRegistrar kFfts[] = {
    FftOp<1, false>("FFT", "The Fourier transform over the last dimension."),
    FftOp<2, false>("FFT2D",
                    "The Fourier transform over the last 2 dimensions."),
    FftOp<3, false>("FFT3D",
                    "The Fourier transform over the last 3 dimensions."),
    FftOp<1, true>("IFFT", "The inverse transform over the last dimension."),
    FftOp<2, true>("IFFT2D",
                   "The inverse transform over the last 2 dimensions."),
    FftOp<3, true>("IFFT3D",
                   "The inverse transform over the last 3 dimensions."),
};

// Of complex64 alone, and without gradients: what graphs up to version 14 have.
template <int kRank, bool kInverse>
OpBuilder OldFftOp(const char* name) {
  OpBuilder b(name);
  b.Input("input: complex64")
      .Output("output: complex64")
      .Deprecated(15, (kInverse ? kUseBackward : kUseForward)[kRank - 1])
      .Doc("The Fourier transform, or its inverse, over the last dimensions.")
      .Shape(SameShapeOfRank<kRank>)
      .Cpu(Compute<Transform<kRank, kInverse>>);
  return b;
}
[[maybe_unused]] const OpRegistrar kOldFfts[] = {
    OldFftOp<1, false>("BatchFFT"),   OldFftOp<2, false>("BatchFFT2D"),
    OldFftOp<3, false>("BatchFFT3D"), OldFftOp<1, true>("BatchIFFT"),
    OldFftOp<2, true>("BatchIFFT2D"), OldFftOp<3, true>("BatchIFFT3D"),
};

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
      return InvalidArgument("fft_length[", d, "] must >= 0, but got: ", n);
    }
    if (kHalf && d == kRank - 1 && n > 0) n = n / 2 + 1;
    sizes[sizes.size() - kRank + d] = n;
  }
  c.set_output(0, Shape(sizes));
  return OkStatus();
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
    // An empty dimension is let through, as upstream: the result is zeros.
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

template <typename T, int kRank>
Status RealTransformOf(const Tensor& in, const Shape& full, Tensor& out) {
  using E = std::complex<T>;
  const int last = full.rank() - 1;
  E* to = out.data<E>();
  HR_RETURN_IF_ERROR((TransformDimension<T, T, E>(
      SizesOf(full), last, full[last], {in.data<T>(), in.shape()},
      {to, out.shape()}, false)));
  // The real dimension first: the others then have half of the work.
  for (int d = last - 1; d > last - kRank; --d) {
    HR_RETURN_IF_ERROR((TransformDimension<T, E, E>(SizesOf(out.shape()), d,
                                                    full[d], {to, out.shape()},
                                                    {to, out.shape()}, false)));
  }
  return OkStatus();
}

template <int kRank>
Status RealTransform(KernelContext& c) {
  const Tensor& in = c.input(0);
  Shape full;
  HR_RETURN_IF_ERROR((CheckLengths<kRank, false>(c, &full)));
  Tensor& out = c.output(0);
  HR_RETURN_IF_ERROR(CheckTransformTypes("forward", in.dtype(), out.dtype(),
                                         in.dtype(), out.dtype()));
  if (out.num_elements() == 0) return OkStatus();
  if (in.num_elements() == 0) return FillZeros(out);
  return in.dtype() == DType::kFloat
             ? RealTransformOf<float, kRank>(in, full, out)
             : RealTransformOf<double, kRank>(in, full, out);
}

// The last dimension's other half is the conjugate of the first.
template <typename T, int kRank>
Status RealInverseOf(const Tensor& in, const Shape& full, Tensor& out) {
  using E = std::complex<T>;
  const int last = full.rank() - 1;
  std::vector<int64_t> box = SizesOf(full);
  box[last] = full[last] / 2 + 1;
  HR_ASSIGN_OR_RETURN(const Shape half, Shape::Make(box));
  Tensor room;
  const Tensor* from = &in;
  // The real dimension last here, as what comes of it is real. All scales are
  // applied there in one go.
  double scale = 1.0 / static_cast<double>(full[last]);
  for (int d = last - kRank + 1; d < last; ++d) {
    if (from == &in) {
      HR_ASSIGN_OR_RETURN(room, Tensor::Allocate(in.dtype(), half));
    }
    HR_RETURN_IF_ERROR((TransformDimension<T, E, E>(
        box, d, full[d], {from->data<E>(), from->shape()},
        {room.data<E>(), half}, true)));
    from = &room;
    scale /= static_cast<double>(full[d]);
  }
  return TransformDimension<T, E, T>(box, last, full[last],
                                     {from->data<E>(), from->shape()},
                                     {out.data<T>(), full}, true, scale);
}

template <int kRank>
Status RealInverse(KernelContext& c) {
  const Tensor& in = c.input(0);
  Shape full;
  HR_RETURN_IF_ERROR((CheckLengths<kRank, true>(c, &full)));
  Tensor& out = c.output(0);
  HR_RETURN_IF_ERROR(CheckTransformTypes("backward", in.dtype(), out.dtype(),
                                         out.dtype(), in.dtype()));
  if (out.num_elements() == 0) return OkStatus();
  if (in.num_elements() == 0) return FillZeros(out);
  return out.dtype() == DType::kFloat
             ? RealInverseOf<float, kRank>(in, full, out)
             : RealInverseOf<double, kRank>(in, full, out);
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
  // All but two are double; of odd lengths all but one, as they have no middle
  // place.
  Value twice = g("AddV2", {g("Sub", {have, g.Int32(2)}), odd});
  Value mask = g("ConcatV2", {fill(one, 1), fill(twice, 2),
                              fill(g("Sub", {one, odd}), 1), g.Int32(0)});
  Value scale = g("RealDiv", {mask, SizeOf<kRank>(g, grad, real)});
  Value turned =
      g(kReal[kRank - 1], {grad, g.input(1)}, {{"Tcomplex", complex}});
  g.set(0, g("Mul", {turned, g("Cast", {scale}, {{"DstT", complex}})}));
  return g.status();
}

// `name` and its inverse.
template <int kRank>
OpRegistrar RealFftOps(const char* name, const char* inverse_name,
                       const char* doc) {
  constexpr char kReals[] = "Treal: {float, double} = DT_FLOAT";
  constexpr char kComplexes[] =
      "Tcomplex: {complex64, complex128} = DT_COMPLEX64";
  OpBuilder forward(name);
  forward.Input("input: Treal")
      .Input("fft_length: int32")
      .Output("output: Tcomplex")
      .Attr(kReals)
      .Attr(kComplexes)
      .Doc(doc)
      .Shape(LengthShape<kRank, true>)
      .Gradient(RealTransformGradient<kRank>)
      .GradientSkips({0}, {0})
      .Vectorize(VectorizeFirst)
      .Cpu(Compute<RealTransform<kRank>>)
      .Register();
  OpBuilder inverse(inverse_name);
  inverse.Input("input: Tcomplex")
      .Input("fft_length: int32")
      .Output("output: Treal")
      .Attr(kReals)
      .Attr(kComplexes)
      .Doc(absl::StrCat("The inverse of ", name, ".").c_str())
      .Shape(LengthShape<kRank, false>)
      .Gradient(RealInverseGradient<kRank>)
      .GradientSkips({}, {0})
      .Vectorize(VectorizeFirst)
      .Cpu(Compute<RealInverse<kRank>>);
  return inverse;
}

[[maybe_unused]] const OpRegistrar kRealFfts[] = {
    RealFftOps<1>("RFFT", "IRFFT",
                  "Half the transform of real numbers, last dimension."),
    RealFftOps<2>("RFFT2D", "IRFFT2D",
                  "Half the transform of real numbers, last 2 dimensions."),
    RealFftOps<3>("RFFT3D", "IRFFT3D",
                  "Half the transform of real numbers, last 3 dimensions."),
};

}  // namespace
}  // namespace headrace
