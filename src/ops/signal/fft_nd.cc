// FFTND, IFFTND, RFFTND, IRFFTND: transforms over the axes that are named. Of
// dimensions longer than their transform the first places are read.
#include <algorithm>
#include <cstring>

#include "op/op.h"
#include "ops/signal/transform_dimension.h"

namespace headrace {
namespace {

// What a transform is asked to do: axes in [0, rank) and a length for each.
struct Plan {
  std::vector<int> axes;
  std::vector<int64_t> lengths;
};

StatusOr<Plan> PlanOf(const Tensor& lengths, const Tensor& axes, int rank) {
  Plan plan;
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    HR_ASSIGN_OR_RETURN(const int axis,
                        NormalizeAxis(axes.data<int32_t>()[i], rank));
    if (std::find(plan.axes.begin(), plan.axes.end(), axis) !=
        plan.axes.end()) {
      return InvalidArgument("axes names dimension ", axis, " twice");
    }
    const int64_t n = lengths.data<int32_t>()[i];
    if (n < 0) {
      return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", n);
    }
    plan.axes.push_back(axis);
    plan.lengths.push_back(n);
  }
  return plan;
}

// How many places of half a transform of length n there are.
int64_t HalfOf(int64_t n) { return n > 0 ? n / 2 + 1 : 0; }

// `kHalf`: the last axis of the output is halved (RFFTND).
template <bool kHalf>
Status NdShape(ShapeContext& c) {
  for (int i : {1, 2}) HR_RETURN_IF_ERROR(CheckRank(c.input(i), 1));
  HR_RETURN_IF_ERROR(MergeShapes(c.input(1), c.input(2)).status());
  const Shape& in = c.input(0);
  if (!in.known_rank()) return OkStatus();
  if (!c.value(2) || !c.value(1)) {
    c.set_output(0, Shape::UnknownOfRank(in.rank()));
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(const Plan plan,
                      PlanOf(*c.value(1), *c.value(2), in.rank()));
  Shape out = in;
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const bool half = kHalf && i + 1 == plan.axes.size();
    out.set_dim(plan.axes[i], half ? HalfOf(plan.lengths[i]) : plan.lengths[i]);
  }
  HR_RETURN_IF_ERROR(Shape::Make(out.dims(), true).status());
  c.set_output(0, std::move(out));
  return OkStatus();
}

// `half_input`: the last axis reads half of its length (IRFFTND).
StatusOr<Plan> CheckedPlan(const KernelContext& c, bool half_input) {
  const Tensor& in = c.input(0);
  HR_ASSIGN_OR_RETURN(Plan plan, PlanOf(c.input(1), c.input(2), in.rank()));
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const int64_t have = in.dim(plan.axes[i]);
    const bool half = half_input && i + 1 == plan.axes.size();
    const int64_t need = half ? HalfOf(plan.lengths[i]) : plan.lengths[i];
    if (have != 0 && have < need) {
      return InvalidArgument("Input dimension ", plan.axes[i],
                             " must have length of at least ", need,
                             " but got: ", have);
    }
  }
  return plan;
}

// Copies the first places that both sides have. `E` is an element.
template <typename E>
void CopyFirst(const E* from, const Shape& a, E* to, const Shape& b) {
  const int rank = a.rank();
  const auto as = StepsOf(a, 1), bs = StepsOf(b, 1);
  std::vector<int64_t> box(rank), at(rank, 0);
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) {
    box[d] = std::min(a[d], b[d]);
    count *= box[d];
  }
  if (count == 0) return;
  const int64_t row = rank > 0 ? box[rank - 1] : 1;
  while (true) {
    int64_t x = 0, y = 0;
    for (int d = 0; d < rank; ++d) {
      x += at[d] * as[d];
      y += at[d] * bs[d];
    }
    std::copy_n(from + x, row, to + y);
    // The last dimension is a run of its own, copied at once.
    int d = rank - 2;
    for (; d >= 0 && ++at[d] == box[d]; --d) at[d] = 0;
    if (d < 0) return;
  }
}

// `t` with dimensions d and last exchanged, in memory of its own.
template <typename E>
StatusOr<Tensor> SwapLast(const Tensor& t, int d) {
  const int last = t.rank() - 1;
  Shape shape = t.shape();
  shape.set_dim(d, t.dim(last));
  shape.set_dim(last, t.dim(d));
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(t.dtype(), shape));
  const int64_t outer = shape.Product(0, d), m = t.dim(d);
  const int64_t middle = shape.Product(d + 1, last), n = t.dim(last);
  const E* from = t.data<E>();
  E* to = out.data<E>();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t k = 0; k < middle; ++k) {
        const E* row = from + ((o * m + i) * middle + k) * n;
        E* column = to + (o * n * middle + k) * m + i;
        for (int64_t j = 0; j < n; ++j) column[j * middle * m] = row[j];
      }
    }
  }
  return out;
}

// Transforms axis `d` of `to` in place.
template <typename T>
Status InPlace(Tensor& to, int d, bool inverse, double scale) {
  using E = std::complex<T>;
  return TransformDimension<T, E, E>(
      SizesOf(to.shape()), d, to.dim(d), {to.data<E>(), to.shape()},
      {to.data<E>(), to.shape()}, inverse, scale);
}

// Where nothing is transformed, or of nothing.
template <typename E>
Status CopyOrZeros(KernelContext& c) {
  Tensor& out = c.output(0);
  // Places for which the input has nothing stay zeros.
  std::memset(out.raw(), 0, out.bytes());
  CopyFirst(c.in<E>(0), c.input(0).shape(), out.data<E>(), out.shape());
  return OkStatus();
}

double ScaleOf(const Plan& plan, bool inverse) {
  double size = 1;
  for (int64_t n : plan.lengths) size *= static_cast<double>(n);
  return inverse ? 1 / size : 1;
}

template <typename T, bool kInverse>
Status RunComplexOf(KernelContext& c, const Plan& plan) {
  using E = std::complex<T>;
  Tensor& out = c.output(0);
  HR_RETURN_IF_ERROR(CopyOrZeros<E>(c));
  if (c.input(0).num_elements() == 0) return OkStatus();
  double scale = ScaleOf(plan, kInverse);
  for (int axis : plan.axes) {
    // The scale goes into the first transform.
    HR_RETURN_IF_ERROR(InPlace<T>(out, axis, kInverse, scale));
    scale = 1;
  }
  return OkStatus();
}

template <bool kInverse>
Status RunComplex(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Plan plan, CheckedPlan(c, false));
  if (c.output(0).num_elements() == 0) return OkStatus();
  return c.input(0).dtype() == DType::kComplex64
             ? RunComplexOf<float, kInverse>(c, plan)
             : RunComplexOf<double, kInverse>(c, plan);
}

template <typename T>
Status RunRealOf(KernelContext& c, const Plan& plan) {
  using E = std::complex<T>;
  Tensor in = c.input(0);
  Tensor to = c.output(0);
  if (plan.axes.empty()) {
    std::copy_n(in.data<T>(), in.num_elements(), to.data<E>());
    return OkStatus();
  }
  if (in.num_elements() == 0) return CopyOrZeros<E>(c);
  const int d = plan.axes.back(), last = in.rank() - 1;
  const int64_t n = plan.lengths.back();
  if (d != last) {
    HR_ASSIGN_OR_RETURN(in, SwapLast<T>(in, d));
    Shape swapped = to.shape();
    swapped.set_dim(d, to.dim(last));
    swapped.set_dim(last, to.dim(d));
    HR_ASSIGN_OR_RETURN(to, Tensor::Allocate(to.dtype(), swapped));
  }
  HR_RETURN_IF_ERROR((TransformDimension<T, T, E>(
      SizesOf(to.shape()), last, n, {in.data<T>(), in.shape()},
      {to.data<E>(), to.shape()}, false)));
  if (d != last) {
    HR_ASSIGN_OR_RETURN(to, SwapLast<E>(to, d));
    c.set_output(0, to);
  }
  for (size_t i = 0; i + 1 < plan.axes.size(); ++i) {
    HR_RETURN_IF_ERROR(InPlace<T>(to, plan.axes[i], false, 1));
  }
  return OkStatus();
}

Status RunReal(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Plan plan, CheckedPlan(c, false));
  const DType in = c.input(0).dtype(), out = c.op().output_types()[0];
  HR_RETURN_IF_ERROR(CheckTransformTypes("forward", in, out, in, out));
  if (c.output(0).num_elements() == 0) return OkStatus();
  return in == DType::kFloat ? RunRealOf<float>(c, plan)
                             : RunRealOf<double>(c, plan);
}

template <typename T>
Status RunRealInverseOf(KernelContext& c, const Plan& plan) {
  using E = std::complex<T>;
  const Tensor& in = c.input(0);
  Tensor to = c.output(0);
  if (plan.axes.empty()) {
    const E* from = in.data<E>();
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      to.data<T>()[i] = from[i].real();
    }
    return OkStatus();
  }
  if (in.num_elements() == 0) {
    std::memset(to.raw(), 0, to.bytes());
    return OkStatus();
  }
  const int d = plan.axes.back(), last = in.rank() - 1;
  const int64_t n = plan.lengths.back();
  Shape half = to.shape();
  half.set_dim(d, HalfOf(n));
  HR_ASSIGN_OR_RETURN(Tensor room, c.Temporary(in.dtype(), half));
  CopyFirst(in.data<E>(), in.shape(), room.data<E>(), half);
  for (size_t i = 0; i + 1 < plan.axes.size(); ++i) {
    HR_RETURN_IF_ERROR(InPlace<T>(room, plan.axes[i], true, 1));
  }
  if (d != last) {
    HR_ASSIGN_OR_RETURN(room, SwapLast<E>(room, d));
    Shape swapped = room.shape();
    swapped.set_dim(last, n);
    HR_ASSIGN_OR_RETURN(to, Tensor::Allocate(to.dtype(), swapped));
  }
  HR_RETURN_IF_ERROR((TransformDimension<T, E, T>(
      SizesOf(room.shape()), last, n, {room.data<E>(), room.shape()},
      {to.data<T>(), to.shape()}, true, ScaleOf(plan, true))));
  if (d != last) {
    HR_ASSIGN_OR_RETURN(to, SwapLast<T>(to, d));
    c.set_output(0, to);
  }
  return OkStatus();
}

Status RunRealInverse(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Plan plan, CheckedPlan(c, true));
  const DType in = c.input(0).dtype(), out = c.op().output_types()[0];
  HR_RETURN_IF_ERROR(CheckTransformTypes("backward", in, out, out, in));
  if (c.output(0).num_elements() == 0) return OkStatus();
  return out == DType::kFloat ? RunRealInverseOf<float>(c, plan)
                              : RunRealInverseOf<double>(c, plan);
}

// --- Gradients. All of them end with zeros for the places that were not read.

// The product of the lengths, as a scalar of `dtype`.
Value SizeOf(GradientContext& g, DType dtype) {
  return g("Cast", {g("Prod", {g.input(1), g.Int32s({0})})}, {{"DstT", dtype}});
}

// `x` with zeros after it up to `sizes`.
Value PadTo(GradientContext& g, const Value& x, const Value& sizes) {
  Value after = g("Sub", {sizes, g.ShapeOf(x)});
  return g("Pad", {x, g("Pack", {g("ZerosLike", {after}), after},
                        {{"axis", int64_t{1}}})});
}

// The sizes of `x`, but `n` for the last of the axes.
Value WithLast(GradientContext& g, const Value& sizes, const Value& n) {
  Value rank = g("Size", {sizes});
  Value axis = g("FloorMod",
                 {g("StridedSlice",
                    {g.input(2), g.Int32s({-1}), g.Int32s({0}), g.Int32s({1})},
                    {{"end_mask", int64_t{1}}}),
                  rank});
  return g("TensorScatterUpdate",
           {sizes, g("ExpandDims", {axis, g.Int32(1)}), n});
}

// The last length, as a vector of one.
Value LastLength(GradientContext& g) {
  return g("StridedSlice",
           {g.input(1), g.Int32s({-1}), g.Int32s({0}), g.Int32s({1})},
           {{"end_mask", int64_t{1}}});
}

template <bool kInverse>
Status ComplexGradient(GradientContext& g) {
  const char* opposite = kInverse ? "FFTND" : "IFFTND";
  Value turned = g(opposite, {g.grad(), g.input(1), g.input(2)});
  Value scaled = g(kInverse ? "RealDiv" : "Mul",
                   {turned, SizeOf(g, g.op().output_types()[0])});
  g.set(0, PadTo(g, scaled, g.ShapeOf(g.input(0))));
  return g.status();
}

// Half a spectrum, filled up with zeros and transformed back.
Status RealGradient(GradientContext& g) {
  const DType real = g.op().input_types()[0];
  const Value grad = g.grad();
  Value full = PadTo(g, grad, WithLast(g, g.ShapeOf(grad), LastLength(g)));
  Value back = g("IFFTND", {full, g.input(1), g.input(2)});
  Value sum = g("Real", {back}, {{"Tout", real}});
  g.set(0, PadTo(g, g("Mul", {sum, SizeOf(g, real)}), g.ShapeOf(g.input(0))));
  return g.status();
}

// Every place but the first and, for even lengths, the last stands for two.
Status RealInverseGradient(GradientContext& g) {
  const DType real = g.op().output_types()[0];
  const DType complex = g.op().input_types()[0];
  Value turned =
      g("RFFTND", {g.grad(), g.input(1), g.input(2)}, {{"Tcomplex", complex}});
  Value n = LastLength(g), one = g.Int32s({1});
  Value odd = g("FloorMod", {n, g.Int32s({2})});
  Value half = g("FloorDiv", {n, g.Int32s({2})});
  auto fill = [&](Value count, double v) {
    return g("Fill", {count, g.Scalar(real, v)});
  };
  Value mask = g("ConcatV2", {fill(one, 1),
                              fill(g("Sub", {g("AddV2", {half, odd}), one}), 2),
                              fill(g("Sub", {one, odd}), 1), g.Int32(0)});
  Value ones = g("OnesLike", {g.ShapeOf(turned)});
  Value places = WithLast(g, ones, g("AddV2", {half, one}));
  Value scale = g("RealDiv", {g("Reshape", {mask, places}), SizeOf(g, real)});
  Value scaled = g("Mul", {turned, g("Cast", {scale}, {{"DstT", complex}})});
  g.set(0, PadTo(g, scaled, g.ShapeOf(g.input(0))));
  return g.status();
}

OpBuilder ComplexOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("input: Tcomplex")
      .Input("fft_length: int32")
      .Input("axes: int32")
      .Output("output: Tcomplex")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .Doc(doc)
      .Shape(NdShape<false>)
      .GradientSkips({}, {0});
  return b;
}

const OpRegistrar forward =
    ComplexOp("FFTND", "The Fourier transform over the axes.")
        .Gradient(ComplexGradient<false>)
        .Cpu(Compute<RunComplex<false>>);
const OpRegistrar backward =
    ComplexOp("IFFTND", "The inverse transform over the axes.")
        .Gradient(ComplexGradient<true>)
        .Cpu(Compute<RunComplex<true>>);

HR_OP(RFFTND)
    .Input("input: Treal")
    .Input("fft_length: int32")
    .Input("axes: int32")
    .Output("output: Tcomplex")
    .Attr("Treal: {float, double} = DT_FLOAT")
    .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
    .Doc("Half the transform of real numbers over the axes.")
    .Shape(NdShape<true>)
    .Gradient(RealGradient)
    .GradientSkips({}, {0})
    .Cpu(Compute<RunReal>);

HR_OP(IRFFTND)
    .Input("input: Tcomplex")
    .Input("fft_length: int32")
    .Input("axes: int32")
    .Output("output: Treal")
    .Attr("Treal: {float, double} = DT_FLOAT")
    .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
    .Doc("The inverse of RFFTND.")
    .Shape(NdShape<false>)
    .Gradient(RealInverseGradient)
    .GradientSkips({}, {0})
    .Cpu(Compute<RunRealInverse>);

}  // namespace
}  // namespace headrace
