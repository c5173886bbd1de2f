#include "ops/math/elementwise/elementwise.h"

#include <atomic>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/broadcast_plan.h"

namespace headrace {
namespace {

// Work below this stays on the calling thread without asking the pool.
constexpr double kInlineNs = 10000;

// --- Calls on fixed memory.

void RunUnary(BoundCall& c) {
  reinterpret_cast<UnaryLoop>(const_cast<void*>(c.loop))(c.in[0], c.out, c.n);
  RunNext(c);
}
void RunBinary(BoundCall& c) {
  reinterpret_cast<BinaryLoop>(const_cast<void*>(c.loop))(c.in[0], c.in[1],
                                                          c.out, c.n, c.kind);
  RunNext(c);
}
void RunChecked(BoundCall& c) {
  c.error |= reinterpret_cast<CheckedLoop>(const_cast<void*>(c.loop))(
      c.in[0], c.in[1], c.out, c.n, c.kind);
  RunNext(c);
}

// For so many elements; null where there is none.
auto SmallLoop(const SmallLoops& small, int64_t n) {
  return n == 1             ? small.one
         : n <= 4           ? small.four
         : n <= kBoundBlock ? small.block
                            : nullptr;
}

bool IsInline(const Shape& output, float ns) {
  return static_cast<float>(output.num_elements()) * ns < kInlineNs;
}

// Sets n and kind for a loop over two operands; *whole: they count as such of
// as many elements, up to the end of a block.
bool BindTwo(absl::Span<const BoundInput> inputs, const Shape& output,
             BoundCall* call, bool* whole) {
  if (inputs.size() != 2) return false;
  const int64_t n = output.num_elements();
  const int64_t na = inputs[0].shape->num_elements();
  const int64_t nb = inputs[1].shape->num_elements();
  if ((na != n && na != 1) || (nb != n && nb != 1)) return false;
  call->n = n;
  call->kind = na == nb ? 0 : na == 1 ? 1 : 2;
  *whole = (na == n || inputs[0].steady) && (nb == n || inputs[1].steady);
  return true;
}

class UnaryLoopKernel : public Kernel, public BindsCalls {
 public:
  UnaryLoopKernel(const ResolvedOp& op, UnaryLoop fn, float ns,
                  SmallLoops small)
      : fn_(fn),
        small_(small),
        in_size_(DTypeSize(op.input_types()[0])),
        out_size_(DTypeSize(op.output_types()[0])) {
    loop_.kind = ElementwiseLoop::kUnary;
    loop_.fn = reinterpret_cast<const void*>(fn);
    loop_.cost = ns;
  }
  Status Run(KernelContext& c) override {
    const Tensor& x = c.input(0);
    const int64_t n = x.num_elements();
    if (n == 0) return OkStatus();
    const char* from = static_cast<const char*>(x.raw());
    char* to = static_cast<char*>(c.output(0).raw());
    if (n * loop_.cost < kInlineNs) {
      fn_(from, to, n);
      return OkStatus();
    }
    ParallelFor(n, loop_.cost, [&](int64_t begin, int64_t end) {
      fn_(from + begin * in_size_, to + begin * out_size_, end - begin);
    });
    return OkStatus();
  }
  const ElementwiseLoop* elementwise() const override { return &loop_; }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    return IsInline(output, loop_.cost) &&
           BindUnaryLoop(fn_, small_, inputs, output, call);
  }

 private:
  const UnaryLoop fn_;
  const SmallLoops small_;
  const size_t in_size_, out_size_;
  ElementwiseLoop loop_;
};

// True when `s` is the last dimensions of `out`'s shape.
bool IsSuffix(const Shape& s, const Tensor& out) {
  const int skip = out.rank() - s.rank();
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] != out.dim(skip + i)) return false;
  }
  return true;
}

// `loop(a, b, y, n, kind)` over two operands that broadcast to `out`.
template <typename Loop>
[[gnu::hot]] void RunTwo(const Loop& loop, float ns, const Tensor& a,
                         const Tensor& b, const Tensor& out) {
  const size_t in_size = DTypeSize(a.dtype()), size = DTypeSize(out.dtype());
  const char* pa = static_cast<const char*>(a.raw());
  const char* pb = static_cast<const char*>(b.raw());
  char* to = static_cast<char*>(out.raw());
  const int64_t n = out.num_elements();
  const int64_t na = a.num_elements(), nb = b.num_elements();
  // Empty tensors may have no memory at all.
  if (n == 0) return;
  // Operands as large as the output are not broadcast, whatever their ranks.
  if ((na == n || na == 1) && (nb == n || nb == 1)) {
    // kind as the loops take it: 0 side by side, else which operand is one
    // element.
    const int kind = na == nb ? 0 : na == 1 ? 1 : 2;
    if (n * ns < kInlineNs) return loop(pa, pb, to, n, kind);
    const size_t step_a = na == 1 ? 0 : in_size, step_b = nb == 1 ? 0 : in_size;
    ParallelFor(n, ns, [&](int64_t begin, int64_t end) {
      loop(pa + begin * step_a, pb + begin * step_b, to + begin * size,
           end - begin, kind);
    });
    return;
  }
  // A small tensor and a vector along its rows: not worth a plan.
  // A bias on a small batch.
  if (n * ns < kInlineNs && na == n && nb > 1 && IsSuffix(b.shape(), out)) {
    for (int64_t i = 0; i < n; i += nb) {
      loop(pa + i * in_size, pb, to + i * size, nb, 0);
    }
    return;
  }
  const BroadcastPlan plan(out.shape(), {&a.shape(), &b.shape()});
  RunBroadcast(plan, {{pa, in_size}, {pb, in_size}}, to, size,
               IsPlain(a.dtype()), ns, [&](const BroadcastSpan& s) {
                 loop(s.operands[0], s.operands[1], s.out, s.n, s.repeated);
               });
}

class BinaryLoopKernel : public Kernel, public BindsCalls {
 public:
  BinaryLoopKernel(BinaryLoop fn, float ns, SmallLoops small)
      : fn_(fn), small_(small) {
    loop_.kind = ElementwiseLoop::kBinary;
    loop_.fn = reinterpret_cast<const void*>(fn);
    loop_.cost = ns;
  }
  Status Run(KernelContext& c) override {
    RunTwo(fn_, loop_.cost, c.input(0), c.input(1), c.output(0));
    return OkStatus();
  }
  const ElementwiseLoop* elementwise() const override { return &loop_; }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    return IsInline(output, loop_.cost) &&
           BindBinaryLoop(fn_, small_, inputs, output, call);
  }

 private:
  const BinaryLoop fn_;
  const SmallLoops small_;
  ElementwiseLoop loop_;
};

Status LoopFailure(const ResolvedOp& op, uint32_t error) {
  // Upstream's text: its check knows no TruncateDiv.
  if (op.name() == "TruncateDiv") {
    return Internal(
        "Unexpected error in binary operator (only integer div and mod should "
        "have errors)");
  }
  if (error & kIntegerDivisionByZero) {
    return InvalidArgument("Integer division by zero");
  }
  return InvalidArgument("Integers to negative integer powers are not allowed");
}

class CheckedLoopKernel : public Kernel, public BindsCalls {
 public:
  CheckedLoopKernel(CheckedLoop fn, float ns) : fn_(fn), ns_(ns) {}
  Status Run(KernelContext& c) override {
    std::atomic<uint32_t> errors = 0;
    auto loop = [&](const void* a, const void* b, void* y, int64_t n,
                    int kind) {
      // Reported at the end: loops do not stop, as upstream's do not.
      if (uint32_t e = fn_(a, b, y, n, kind)) errors.fetch_or(e);
    };
    RunTwo(loop, ns_, c.input(0), c.input(1), c.output(0));
    return errors == 0 ? OkStatus() : LoopFailure(c.op(), errors);
  }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    bool whole;
    if (!IsInline(output, ns_) || !BindTwo(inputs, output, call, &whole)) {
      return false;
    }
    call->run = RunChecked;
    call->loop = reinterpret_cast<const void*>(fn_);
    return true;
  }
  // Errors follow from the second operand alone.
  bool may_fail(absl::Span<const BoundInput> inputs) const override {
    const Tensor* b = inputs[1].constant;
    if (b == nullptr) return true;
    StatusOr<Tensor> tried = Tensor::Allocate(b->dtype(), b->shape());
    return !tried.ok() ||
           fn_(b->raw(), b->raw(), tried->raw(), b->num_elements(), 0) != 0;
  }
  Status Failure(const ResolvedOp& op, const BoundCall& call) const override {
    return LoopFailure(op, call.error);
  }

 private:
  const CheckedLoop fn_;
  const float ns_;
};

}  // namespace

std::unique_ptr<Kernel> MakeUnaryKernel(const ResolvedOp& op, UnaryLoop loop,
                                        float ns, SmallLoops small) {
  return std::make_unique<UnaryLoopKernel>(op, loop, ns, small);
}
std::unique_ptr<Kernel> MakeBinaryKernel(const ResolvedOp&, BinaryLoop loop,
                                         float ns, SmallLoops small) {
  return std::make_unique<BinaryLoopKernel>(loop, ns, small);
}
std::unique_ptr<Kernel> MakeCheckedKernel(CheckedLoop loop, float ns) {
  return std::make_unique<CheckedLoopKernel>(loop, ns);
}

bool BindUnaryLoop(UnaryLoop loop, SmallLoops small,
                   absl::Span<const BoundInput> inputs, const Shape& output,
                   BoundCall* call) {
  call->n = output.num_elements();
  if (inputs.size() != 1 || inputs[0].shape->num_elements() != call->n) {
    return false;
  }
  call->run = SmallLoop(small, call->n);
  if (call->run == nullptr) call->run = RunUnary;
  call->loop = reinterpret_cast<const void*>(loop);
  return true;
}

bool BindBinaryLoop(BinaryLoop loop, SmallLoops small,
                    absl::Span<const BoundInput> inputs, const Shape& output,
                    BoundCall* call) {
  bool whole;
  if (!BindTwo(inputs, output, call, &whole)) return false;
  // Of one element, both operands are whole.
  call->run = whole ? SmallLoop(small, call->n) : nullptr;
  if (call->run == nullptr) call->run = RunBinary;
  call->loop = reinterpret_cast<const void*>(loop);
  return true;
}

void ComputeBinary(BinaryLoop loop, float ns, const Tensor& a, const Tensor& b,
                   const Tensor& out) {
  RunTwo(loop, ns, a, b, out);
}

StatusOr<std::unique_ptr<Kernel>> UnaryKernel(const ResolvedOp& op) {
  const LoopEntry* e =
      FindUnaryLoop(op.name(), static_cast<int>(op.input_types()[0]));
  // A loop of that name may exist for other types of results.
  if (e == nullptr || e->out != static_cast<uint8_t>(op.output_types()[0])) {
    return nullptr;
  }
  return MakeUnaryKernel(op, e->unary, e->ns, e->small);
}

StatusOr<std::unique_ptr<Kernel>> BinaryKernel(const ResolvedOp& op) {
  const LoopEntry* e =
      FindBinaryLoop(op.name(), static_cast<int>(op.input_types()[0]));
  if (e == nullptr || e->out != static_cast<uint8_t>(op.output_types()[0])) {
    return nullptr;
  }
  // Integers: what has no result is an error.
  if (e->checked) return MakeCheckedKernel(e->checked, e->ns);
  return MakeBinaryKernel(op, e->binary, e->ns, e->small);
}

OpBuilder UnaryOp(const char* name, const char* types, const char* doc) {
  OpBuilder b(name);
  b.Input("x: T").Output("y: T").Attr(types).Doc(doc);
  b.Shape(UnchangedShape).InPlace({0}).Cpu(UnaryKernel);
  b.Vectorize(VectorizeBroadcast);
  return b;
}

OpBuilder BinaryOp(const char* name, const char* types, const char* doc) {
  OpBuilder b(name);
  b.Input("x: T").Input("y: T").Output("z: T").Attr(types).Doc(doc);
  b.Shape(BroadcastShape).InPlace({0, 1}).Cpu(BinaryKernel);
  b.Vectorize(VectorizeBroadcast);
  return b;
}

OpBuilder UnaryGradOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("y: T").Input("dy: T").Output("z: T");
  b.Attr(kFloatComplexTypes).Doc(doc);
  b.Shape(EqualSizesShape).InPlace({0, 1}).Cpu(BinaryKernel);
  b.Vectorize(VectorizeBatched);
  return b;
}

Status EqualSizesShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  // Sizes in all, not shapes: upstream compares the numbers of elements.
  if (a.fully_known() && b.fully_known() &&
      a.num_elements() != b.num_elements()) {
    return InvalidArgument(
        "The two arguments to a cwise op must have same number of elements, "
        "got ",
        a.num_elements(), " and ", b.num_elements());
  }
  c.set_output(0, a);
  return OkStatus();
}

Status NothingFlows(GradientContext&) { return OkStatus(); }

Value ConjOf(OpScope& g, const Value& v) {
  return v && IsComplex(v.dtype()) ? g("Conj", {v}) : v;
}

Value TimesScalar(OpScope& g, const Value& v, double k) {
  if (!v) return Value();
  return g("Mul", {v, g.Scalar(v.dtype(), k)});
}

}  // namespace headrace
