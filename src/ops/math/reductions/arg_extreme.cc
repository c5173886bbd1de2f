// ArgMax and ArgMin: where along one axis the extreme element is; the first of
// several. NaNs are passed over.
#include "base/cpu_level.h"
#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/math/reductions/arg_extreme_loops.h"

namespace headrace {

ArgLoops LoopsForArg(DType dtype, bool max) {
  return AtActiveLevel([&](auto level) { return Arg<level>(dtype, max); });
}

namespace {

Status ArgShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  const Tensor* axis = c.value(1);
  if (!x.known_rank()) return OkStatus();
  if (axis == nullptr) {
    if (x.rank() > 0) c.set_output(0, Shape::UnknownOfRank(x.rank() - 1));
    return OkStatus();
  }
  // IntAt reads 32 and 64 bits only.
  const int64_t at =
      axis->dtype() == DType::kInt16 ? axis->scalar<int16_t>() : axis->IntAt(0);
  StatusOr<int> place = NormalizeAxis(at, x.rank());
  if (!place.ok()) {
    return c.Refuse(
        {absl::StrCat("Dimension (", at, ") must be in the range [", -x.rank(),
                      ", ", x.rank(), "), where ", x.rank(),
                      " is the number of dimensions in the input."),
         2},
        place.status());
  }
  const int dim = *place;
  // There is no extreme of nothing.
  if (x[dim] == 0) {
    return InvalidArgument("Reduction axis ", at, " is empty in shape ", x);
  }
  Shape out = x;
  out.RemoveDim(dim);
  c.set_output(0, std::move(out));
  return OkStatus();
}

// The positions in int32, then in the output's type.
template <bool kMax>
Status RunArg(KernelContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& axis = c.input(1);
  const int64_t at =
      axis.dtype() == DType::kInt16 ? axis.scalar<int16_t>() : axis.IntAt(0);
  HR_ASSIGN_OR_RETURN(int dim, NormalizeAxis(at, x.rank()));
  const int64_t outer = x.shape().Product(0, dim), n = x.dim(dim),
                inner = x.shape().Product(dim + 1, x.rank());
  const ArgLoops loops = LoopsForArg(x.dtype(), kMax);
  if (loops.run == nullptr) {
    return Unimplemented(c.op().name(), " of ", DTypeName(x.dtype()));
  }
  const char* in = static_cast<const char*>(x.raw());
  const int64_t size = DTypeSize(x.dtype());
  DispatchDType(
      c.output(0).dtype(), TypeList<int64_t, int32_t, int16_t, uint16_t>{},
      [&](auto tag) {
        using I = typename decltype(tag)::type;
        I* out = c.out<I>(0);
        ParallelFor(outer, n * inner * 0.1 * size,
                    [&](int64_t begin, int64_t end) {
                      // Room is needed for columns side by side only.
                      std::vector<int64_t> places(inner == 1 ? 0 : inner);
                      std::vector<char> best(inner == 1 ? 0 : inner * size);
                      for (int64_t o = begin; o < end; ++o) {
                        const char* from = in + o * n * inner * size;
                        if (inner == 1) {
                          // Rows in memory have a loop of their own, which
                          // looks for the extreme first and for its place
                          // afterwards.
                          out[o] = static_cast<I>(loops.run(from, n));
                          continue;
                        }
                        loops.rows(from, n, inner, best.data(), places.data());
                        for (int64_t j = 0; j < inner; ++j) {
                          out[o * inner + j] = static_cast<I>(places[j]);
                        }
                      }
                    });
      });
  return OkStatus();
}

constexpr char kTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
    "half, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}";

HR_OP(ArgMax)
    .Input("input: T")
    .Input("dimension: Tidx")
    .Output("output: output_type")
    .Attr(kTypes)
    .Attr("Tidx: {int16, int32, int64} = int32")
    .Attr("output_type: {int16, uint16, int32, int64} = int64")
    .Doc("Where along an axis the largest element is; the first of several.")
    .Shape(ArgShape)
    .NoGradient()
    .Vectorize(VectorizeOverAxes)
    .Cpu(Compute<RunArg<true>>);

HR_OP(ArgMin)
    .Input("input: T")
    .Input("dimension: Tidx")
    .Output("output: output_type")
    .Attr(kTypes)
    .Attr("Tidx: {int32, int64} = int32")
    .Attr("output_type: {int32, int64} = int64")
    .Doc("Where along an axis the smallest element is; the first of several.")
    .Shape(ArgShape)
    .NoGradient()
    .Vectorize(VectorizeOverAxes)
    .Cpu(Compute<RunArg<false>>);

const FloatOps arg_extreme_float_ops({"ArgMax", "ArgMin"}, FloatOpsOfReduction);

}  // namespace
}  // namespace headrace
