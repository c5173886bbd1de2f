// ClipByValue.
#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// Bounds that are single numbers go through one loop; whole tensors of bounds
// through Minimum and Maximum.
void RunBound(BoundCall& c) {
  reinterpret_cast<ClipLoop>(const_cast<void*>(c.loop))(c.in[0], c.in[1],
                                                        c.in[2], c.out, c.n);
  RunNext(c);
}

class ClipKernel : public Kernel, public BindsCalls {
 public:
  ClipKernel(ClipLoop loop, BinaryLoop low, BinaryLoop high)
      : loop_(loop), max_(low), min_(high) {}
  Status Run(KernelContext& c) override {
    const Tensor &x = c.input(0), &low = c.input(1), &high = c.input(2);
    const int64_t n = x.num_elements();
    if (n == 0) return OkStatus();
    if (low.num_elements() == 1 && high.num_elements() == 1) {
      const size_t size = DTypeSize(x.dtype());
      const char* from = static_cast<const char*>(x.raw());
      char* to = static_cast<char*>(c.output(0).raw());
      ParallelFor(n, 0.2, [&](int64_t b, int64_t e) {
        loop_(from + b * size, low.raw(), high.raw(), to + b * size, e - b);
      });
      return OkStatus();
    }
    // As upstream: first the upper bound, then the lower, which wins where they
    // cross.
    ComputeBinary(min_, 0.2, x, high, c.output(0));
    ComputeBinary(max_, 0.2, c.output(0), low, c.output(0));
    return OkStatus();
  }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    if (inputs[1].shape->num_elements() != 1 ||
        inputs[2].shape->num_elements() != 1) {
      return false;
    }
    call->run = RunBound;
    call->loop = reinterpret_cast<const void*>(loop_);
    call->n = output.num_elements();
    return true;
  }

 private:
  const ClipLoop loop_;
  const BinaryLoop max_, min_;
};

StatusOr<std::unique_ptr<Kernel>> MakeClip(const ResolvedOp& op) {
  const int t = static_cast<int>(op.type_attr("T"));
  ClipLoop loop = FindClipLoop(t);
  const LoopEntry* max = FindBinaryLoop("Maximum", t);
  const LoopEntry* min = FindBinaryLoop("Minimum", t);
  if (!loop || !max || !min) return nullptr;
  return std::unique_ptr<Kernel>(
      std::make_unique<ClipKernel>(loop, max->binary, min->binary));
}

Status ClipShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  auto fits = [&](const Shape& s) {
    return x.CompatibleWith(s) || s.IsScalar() ||
           (s.fully_known() && s.num_elements() == 1);
  };
  if (!fits(c.input(1)) || !fits(c.input(2))) {
    return InvalidArgument(
        "clip_value_min and clip_value_max must be either of the same shape "
        "as input, or a scalar. input shape: ",
        x, "clip_value_min shape: ", c.input(1),
        "clip_value_max shape: ", c.input(2));
  }
  c.set_output(0, x);
  return OkStatus();
}

// Flows to the bound that holds where one does.
Status ClipGrad(GradientContext& g) {
  Value grad = g.grad();
  if (!g.ok()) return g.status();
  const Value &x = g.input(0), &low = g.input(1), &high = g.input(2);
  Value zero = g.Scalar(grad.dtype(), 0);
  // A value at the bound itself still passes its gradient on, as upstream.
  Value under = g("Less", {x, low}), over = g("Greater", {x, high});
  Value out = g("LogicalOr", {under, over});
  g.set(0, g("SelectV2", {out, zero, grad}));
  if (g.wants(1)) {
    g.set(1, g.ReduceTo(g("SelectV2", {under, grad, zero}), low));
  }
  if (g.wants(2)) {
    g.set(2, g.ReduceTo(g("SelectV2", {over, grad, zero}), high));
  }
  return g.status();
}

// Bounds of a row's own, or of its size, are those of two ops that broadcast.
Status VectorizeClip(VectorizeContext& c) {
  if (c.stacked(0) && !c.stacked(1) && !c.stacked(2) && c.row_rank(1) == 0 &&
      c.row_rank(2) == 0) {
    return c.SetAll(c.Again({c.input(0), c.input(1), c.input(2)}));
  }
  int most = 0;
  for (int i = 0; i < 3; ++i) {
    HR_RETURN_IF_ERROR(c.WantRank(i));
    most = std::max(most, c.row_rank(i));
  }
  Value of_rank[3];
  for (int i = 0; i < 3; ++i) {
    of_rank[i] =
        c.stacked(i) ? c.PadRank(c.input(i), c.row_rank(i), most) : c.input(i);
  }
  return c.Set(
      c("Maximum", {c("Minimum", {of_rank[0], of_rank[2]}), of_rank[1]}));
}

HR_OP(ClipByValue)
    .Input("t: T")
    .Input("clip_value_min: T")
    .Input("clip_value_max: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Doc("t, but no less than clip_value_min and no more than clip_value_max.")
    .Shape(ClipShape)
    .Vectorize(VectorizeClip)
    .Gradient(ClipGrad)
    .GradientSkips({}, {0})
    .InPlace({0})
    .Cpu(MakeClip);

}  // namespace
}  // namespace headrace
