// Softmax and LogSoftmax over the last dimension.
#include "base/cpu_level.h"
#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "op/op.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/nn/softmax_loops.h"

namespace headrace {

template <>
const SoftmaxLoops<float>& LoopsForSoftmax() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return FloatSoftmax<level>(); });
  return *loops;
}
template <>
const SoftmaxLoops<double>& LoopsForSoftmax() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return DoubleSoftmax<level>(); });
  return *loops;
}

namespace {

Status SoftmaxShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  if (x.known_rank() && x.rank() < 1) {
    return InvalidArgument("logits must have >= 1 dimension, got ", x);
  }
  return UnchangedShape(c);
}

template <typename T, bool kLog>
Status RunSoftmax(KernelContext& c) {
  const Tensor& x = c.input(0);
  const int64_t n = x.dim(x.rank() - 1);
  if (x.num_elements() == 0) return OkStatus();
  const T* in = c.in<T>(0);
  T* out = c.out<T>(0);
  ParallelFor(x.num_elements() / n, n * 0.6, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      LoopsForSoftmax<T>().softmax(in + begin * n, out + begin * n, end - begin,
                                   n, kLog);
    } else {
      std::vector<float> row(n);
      for (int64_t r = begin; r < end; ++r) {
        // Small floats compute in float.
        for (int64_t i = 0; i < n; ++i) row[i] = in[r * n + i];
        LoopsForSoftmax<float>().softmax(row.data(), row.data(), 1, n, kLog);
        for (int64_t i = 0; i < n; ++i) out[r * n + i] = T(row[i]);
      }
    }
  });
  return OkStatus();
}

template <bool kLog>
ComputeFn PickSoftmax(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), FloatTypes{}, [&](auto tag) {
    fn = RunSoftmax<typename decltype(tag)::type, kLog>;
  });
  return fn;
}

// The sum over the last dimension, kept.
Value LastSum(OpScope& s, const Value& v) {
  return Named(s, "Sum", "Sum",
               {v, {"reduction_indices", Tensor::Vector<int32_t>({-1})}},
               {{"keep_dims", true}});
}

Status SoftmaxGradient(GradientContext& g) {
  Value d = g.grad(), y = g.output(0);
  if (!d) return g.status();
  // y (d - sum(d y)): the Jacobian is never made.
  Value sum = LastSum(g, Named(g, "mul", "Mul", {d, y}));
  Value apart = Named(g, "sub", "Sub", {d, sum});
  g.set(0, Named(g, "mul", "Mul", {apart, y}));
  return g.status();
}

Status LogSoftmaxGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  Value softmax = g("Exp", {g.output(0)});
  // d - sum(d) softmax.
  Value sum = LastSum(g, d);
  g.set(0, Named(g, "sub", "Sub", {d, Named(g, "mul", "Mul", {sum, softmax})}));
  return g.status();
}

HR_OP(Softmax)
    .Input("logits: T")
    .Output("softmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Doc("exp(x) / sum(exp(x)) over the last dimension.")
    .Shape(SoftmaxShape)
    .Gradient(SoftmaxGradient)
    .GradientSkips({0}, {})
    .InPlace({0})
    .Vectorize(VectorizeBroadcast)
    .Cpu(ComputeFor<PickSoftmax<false>>);

HR_OP(LogSoftmax)
    .Input("logits: T")
    .Output("logsoftmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Doc("x - log(sum(exp(x))) over the last dimension.")
    .Shape(SoftmaxShape)
    .Gradient(LogSoftmaxGradient)
    .GradientSkips({0}, {})
    .InPlace({0})
    .Vectorize(VectorizeBroadcast)
    .Cpu(ComputeFor<PickSoftmax<true>>);

const FloatOps softmax_float_ops({"Softmax"}, FloatOpsPerElement<5>);

}  // namespace
}  // namespace headrace
