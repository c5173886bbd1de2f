// L2Loss: half the sum of squares; and Cross, the product of 3-vectors.
#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "op/op.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/math/loops/wrapping.h"
#include "ops/math/reductions/reduce.h"

namespace headrace {
namespace {

Status RunL2Loss(KernelContext& c) {
  const Tensor& x = c.input(0);
  const DType wide = LoopsForReduction(Reduction::kSumSquares, x.dtype()).out;
  HR_ASSIGN_OR_RETURN(Tensor sum, c.Temporary(wide, Shape()));
  HR_RETURN_IF_ERROR(ReduceMiddle(Reduction::kSumSquares, x.dtype(), x.raw(), 1,
                                  x.num_elements(), 1, sum.raw()));
  DispatchDType(x.dtype(), FloatTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, double>) {
      // Halved before rounding to half or bfloat16: the sum may be beyond their
      // range.
      *c.out<T>(0) = sum.scalar<double>() / 2;
    } else {
      *c.out<T>(0) = static_cast<T>(sum.scalar<float>() / 2);
    }
  });
  return OkStatus();
}

Status L2LossGradient(GradientContext& g) {
  if (Value d = g.grad()) g.set(0, Named(g, "mul", "Mul", {g.input(0), d}));
  return g.status();
}

Status VectorizeL2Loss(VectorizeContext& c) {
  Value flat = c.Reshape(
      c.input(0), c.Join({c.CountSizes(), c.Product(c.Sizes(c.input(0), 1))}));
  HR_RETURN_IF_ERROR(c.status());
  Value sum = c("Sum", {c("Square", {flat}), c.Int32s({1})});
  return c.Set(c("Mul", {sum, c.Scalar(flat.dtype(), 0.5)}));
}

HR_OP(L2Loss)
    .Input("t: T")
    .Output("output: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Doc("Half the sum of squares.")
    .Shape(ScalarShape)
    .Gradient(L2LossGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeL2Loss)
    .Cpu(Compute<RunL2Loss>);

Status CrossShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  auto both = MergeShapes(a, b);
  if (!both.ok()) {
    // In upstream's order of checks.
    return c.Refuse(
        a.rank() == 0 || b.rank() == 0 ? RankIsLess(1, 0) : NotMerged(a, b),
        InvalidArgument("Both inputs must be of same shape: ", a, " vs. ", b));
  }
  if (both->known_rank()) {
    if (both->rank() < 1) {
      return c.Refuse(RankIsLess(1, 0),
                      InvalidArgument("Input must be at least 1D"));
    }
    const int64_t n = (*both)[both->rank() - 1];
    if (n >= 0 && n != 3) {
      return c.Refuse(
          DimensionIsNot(3, n),
          FailedPrecondition(
              "Cross-products are only defined for 3-element vectors."));
    }
  }
  c.set_output(0, *std::move(both));
  return OkStatus();
}

Status RunCross(KernelContext& c) {
  const int64_t rows = c.input(0).num_elements() / 3;
  DispatchDType(c.input(0).dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ParallelFor(rows, 3, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* a = c.in<T>(0) + r * 3;
        const T* b = c.in<T>(1) + r * 3;
        T* y = c.out<T>(0) + r * 3;
        for (int i = 0; i < 3; ++i) {
          const int j = (i + 1) % 3, k = (i + 2) % 3;
          // Integers wrap.
          if constexpr (std::is_integral_v<T>) {
            y[i] = Minus(Times(a[j], b[k]), Times(a[k], b[j]));
          } else {
            y[i] = static_cast<T>(a[j] * b[k] - a[k] * b[j]);
          }
        }
      }
    });
  });
  return OkStatus();
}

Status CrossGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  // (a x b) d: the triple product turns round without a sign.
  g.set(0, g("Cross", {g.input(1), d}));
  g.set(1, g("Cross", {d, g.input(0)}));
  return g.status();
}

HR_OP(Cross)
    .Input("a: T")
    .Input("b: T")
    .Output("product: T")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
        "uint16, half, uint32, uint64}")
    .Doc("Cross products of 3-vectors along the last dimension.")
    .Shape(CrossShape)
    .Gradient(CrossGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeBatched)
    .Cpu(Compute<RunCross>);

// A square and a sum for each, but for the first; then the half.
const FloatOps l2_loss_float_ops({"L2Loss"}, [](FloatOpsContext& c) {
  return 3 * c.input(0) - 1;
});

}  // namespace
}  // namespace headrace
