// Choosing between two tensors, element by element.
#include "base/thread_pool.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/broadcast_plan.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// For elements that are objects.
template <typename T>
void SelectObjects(const bool* c, const void* a, const void* b, void* y,
                   int64_t n, int kind) {
  const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  T* to = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) {
    // Bits of kind: 1 where the first is one element for all, 2 where the
    // second is.
    to[i] = c[i] ? p[kind & 1 ? 0 : i] : q[kind & 2 ? 0 : i];
  }
}

SelectLoop LoopFor(DType d) {
  switch (d) {
    case DType::kString:
      return SelectObjects<std::string>;
    case DType::kResource:
      return SelectObjects<ResourceHandle>;
    case DType::kVariant:
      return SelectObjects<Variant>;
    default:
      return FindSelectLoop(static_cast<int>(DTypeSize(d)));
  }
}

void Run(SelectLoop loop, const Tensor& c, const Tensor& t, const Tensor& e,
         const Tensor& out) {
  const int64_t n = out.num_elements();
  if (n == 0) return;
  const size_t size = DTypeSize(t.dtype());
  const int64_t nt = t.num_elements(), ne = e.num_elements();
  // Below this a plan and a look at the pool cost more than the choice.
  if (n < 4096 && c.num_elements() == n && (nt == n || nt == 1) &&
      (ne == n || ne == 1)) {
    // One element is no broadcast.
    const int kind = n == 1 ? 0 : (nt == 1 ? 1 : 0) | (ne == 1 ? 2 : 0);
    loop(c.data<bool>(), t.raw(), e.raw(), out.raw(), n, kind);
    return;
  }
  const BroadcastPlan plan(out.shape(), {&c.shape(), &t.shape(), &e.shape()});
  RunBroadcast(
      plan, {{c.raw(), 1}, {t.raw(), size}, {e.raw(), size}}, out.raw(), size,
      IsPlain(t.dtype()), 0.4, [&](const BroadcastSpan& s) {
        auto cond = reinterpret_cast<const bool*>(s.operands[0]);
        if ((s.repeated & 1) == 0) {
          loop(cond, s.operands[1], s.operands[2], s.out, s.n, s.repeated >> 1);
          return;
        }
        // One condition for the span.
        bool many[256];
        // As many conditions as a loop's call is worth: a repeated one is laid
        // out, as loops read one each.
        std::fill_n(many, std::min<int64_t>(s.n, 256), *cond);
        for (int64_t i = 0; i < s.n; i += 256) {
          auto at = [&](int k) {
            return s.operands[k] + (s.repeated >> k & 1 ? 0 : i * size);
          };
          loop(many, at(1), at(2), s.out + i * size,
               std::min<int64_t>(256, s.n - i), s.repeated >> 1);
        }
      });
}

// A call on fixed memory, where the condition is as large as the output.
void RunBound(BoundCall& c) {
  reinterpret_cast<SelectLoop>(const_cast<void*>(c.loop))(
      static_cast<const bool*>(c.in[0]), c.in[1], c.in[2], c.out, c.n, c.kind);
  RunNext(c);
}
bool Bind(SelectLoop loop, absl::Span<const BoundInput> inputs,
          const Shape& output, BoundCall* call) {
  const int64_t n = output.num_elements();
  const int64_t nt = inputs[1].shape->num_elements();
  const int64_t ne = inputs[2].shape->num_elements();
  if (inputs[0].shape->num_elements() != n || (nt != n && nt != 1) ||
      (ne != n && ne != 1)) {
    return false;
  }
  call->run = RunBound;
  call->loop = reinterpret_cast<const void*>(loop);
  call->n = n;
  call->kind = n == 1 ? 0 : (nt == 1 ? 1 : 0) | (ne == 1 ? 2 : 0);
  return true;
}

class SelectV2Kernel : public Kernel, public BindsCalls {
 public:
  explicit SelectV2Kernel(SelectLoop loop) : loop_(loop) {}
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    return Bind(loop_, inputs, output, call);
  }
  Status Run(KernelContext& c) override {
    headrace::Run(loop_, c.input(0), c.input(1), c.input(2), c.output(0));
    return OkStatus();
  }

 private:
  const SelectLoop loop_;
};

// The condition is a scalar, as large as the others, or a vector that picks
// whole rows.
class SelectKernel : public Kernel, public BindsCalls {
 public:
  explicit SelectKernel(SelectLoop loop) : loop_(loop) {}
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    return Bind(loop_, inputs, output, call);
  }
  Status Run(KernelContext& c) override {
    const Tensor &cond = c.input(0), &t = c.input(1);
    if (cond.rank() == 1 && t.rank() > 1) {
      Shape rows = cond.shape();
      // A vector of conditions broadcasts along rows as [n, 1, ..., 1].
      while (rows.rank() < t.rank()) rows.AddDim(1);
      headrace::Run(loop_, cond.WithShape(rows), t, c.input(2), c.output(0));
    } else {
      headrace::Run(loop_, cond, t, c.input(2), c.output(0));
    }
    return OkStatus();
  }

 private:
  const SelectLoop loop_;
};

template <typename K>
StatusOr<std::unique_ptr<Kernel>> MakeSelect(const ResolvedOp& op) {
  SelectLoop loop = LoopFor(op.type_attr("T"));
  if (loop == nullptr) return nullptr;
  return std::unique_ptr<Kernel>(std::make_unique<K>(loop));
}

Status SelectV2Shape(ShapeContext& c) {
  const Shape &cond = c.input(0), &t = c.input(1), &e = c.input(2);
  // What is chosen may be resources; both are of one kind.
  if (c.input_handle(1)) c.set_output_handle(0, *c.input_handle(1));
  // The common case without any broadcasting.
  if (cond == t && t == e && t.known_rank()) {
    c.set_output(0, t);
    return OkStatus();
  }
  StatusOr<Shape> both = BroadcastShapes(t, e);
  // In upstream's order, as the refusal names the pair that does not fit.
  StatusOr<Shape> s = both.ok() ? BroadcastShapes(cond, *both) : both;
  if (!s.ok()) {
    return c.Refuse(
        both.ok() ? NotBroadcast(cond, *both) : NotBroadcast(t, e),
        InvalidArgument("condition ", cond, ", then ", t, ", and else ", e,
                        " must be broadcastable"));
  }
  c.set_output(0, *std::move(s));
  return OkStatus();
}

Status SelectShape(ShapeContext& c) {
  const Shape& cond = c.input(0);
  if (!c.input(1).CompatibleWith(c.input(2))) {
    return InvalidArgument(
        "'then' and 'else' must have the same size.  but received: ",
        c.input(1), " vs. ", c.input(2));
  }
  HR_ASSIGN_OR_RETURN(Shape out, MergeShapes(c.input(1), c.input(2)));
  if (c.input_handle(1)) c.set_output_handle(0, *c.input_handle(1));
  if (cond.known_rank() && out.known_rank() && cond.rank() != 0 &&
      !cond.CompatibleWith(out)) {
    if (cond.rank() != 1) {
      return InvalidArgument(
          "'cond' must be a vector or a scalar when it is not shaped like "
          "'then', but saw shape: ",
          cond);
    }
    if (out.rank() == 0 || (cond[0] >= 0 && out[0] >= 0 && cond[0] != out[0])) {
      return InvalidArgument(
          "Number of batches of 'then' must match size of 'cond', but saw: ",
          out.rank() == 0 ? 1 : out[0], " vs. ", cond[0]);
    }
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// In upstream's nodes.
Status SpelledSelectV2Grad(GradientContext& g, const Value& grad) {
  HR_ASSIGN_OR_RETURN(Tensor none, ScalarOf(grad.dtype(), 0));
  Value zero = NamedConst(g, "zeros", std::move(none));
  Value then = g("SelectV2", {g.input(0), grad, zero});
  Value otherwise = g("SelectV2", {g.input(0), zero, grad});
  g.set(1, SpelledReduceTo(g, then, g.output(0), g.input(1)));
  g.set(2, SpelledReduceTo(g, otherwise, g.output(0), g.input(2)));
  return g.status();
}

Status SelectV2Grad(GradientContext& g) {
  Value grad = g.grad();
  if (!g.ok()) return g.status();
  if (SpelledOut::Now()) return SpelledSelectV2Grad(g, grad);
  Value zero = g.Scalar(grad.dtype(), 0);
  if (g.wants(1)) {
    Value t = g("SelectV2", {g.input(0), grad, zero});
    g.set(1, g.ReduceTo(t, g.input(1)));
  }
  if (g.wants(2)) {
    Value e = g("SelectV2", {g.input(0), zero, grad});
    g.set(2, g.ReduceTo(e, g.input(2)));
  }
  return g.status();
}
Status SelectGrad(GradientContext& g) {
  Value grad = g.grad();
  // As large as the branches: Select does not broadcast its branches.
  Value zeros = SpelledOut::Now() ? NamedZerosLike(g, "zeros_like", g.input(1))
                                  : g("ZerosLike", {g.input(1)});
  g.set(1, g("Select", {g.input(0), grad, zeros}));
  g.set(2, g("Select", {g.input(0), zeros, grad}));
  return g.status();
}

// The condition is a scalar, picks rows, or is shaped as the others: sizes of 1
// behind it make it broadcast like that.
Status VectorizeSelect(VectorizeContext& c) {
  for (int i = 0; i < 3; ++i) HR_RETURN_IF_ERROR(c.WantRank(i));
  const int rank = std::max(c.row_rank(1), c.row_rank(2));
  Value condition = c.input(0);
  const int behind = rank - c.row_rank(0);
  if (behind > 0) {
    const std::vector<int32_t> ones(behind, 1);
    condition =
        c.Reshape(condition, c.Join({c.Sizes(condition, 0), c.Int32s(ones)}));
  }
  return c.Set(c("SelectV2", {condition, c.input(1), c.input(2)}));
}

HR_OP(SelectV2)
    .Input("condition: bool")
    .Input("t: T")
    .Input("e: T")
    .Output("output: T")
    .Attr("T: type")
    .Doc("t where condition holds, e elsewhere; all three broadcast.")
    .Shape(SelectV2Shape)
    .Vectorize(VectorizeBroadcast)
    .Gradient(SelectV2Grad)
    .GradientSkips({}, {0})
    .InPlace({1, 2})
    .Cpu(MakeSelect<SelectV2Kernel>);
HR_OP(Select)
    .Input("condition: bool")
    .Input("t: T")
    .Input("e: T")
    .Output("output: T")
    .Attr("T: type")
    .RawName("t", "x")
    .RawName("e", "y")
    .Doc(
        "t where condition holds, e elsewhere. t and e have one shape; the "
        "condition has it too, or is a scalar, or a vector that picks rows.")
    .Shape(SelectShape)
    .Vectorize(VectorizeSelect)
    .Gradient(SelectGrad)
    .GradientSkips({2}, {0})
    .InPlace({1, 2})
    .Cpu(MakeSelect<SelectKernel>);

}  // namespace
}  // namespace headrace
