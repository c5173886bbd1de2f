// BlockLSTM, BlockLSTMV2 and their gradient ops: all steps of a sequence.
#include <algorithm>

#include "absl/strings/match.h"
#include "ops/math/products/gemm.h"
#include "ops/nn/recurrent/block_lstm.h"

namespace headrace {
namespace {

// V2 has its gates in another order, and neither bias nor, unless asked for, a
// clip.
LstmLayout SequenceLayout(const KernelContext& c) {
  const ResolvedOp& op = c.op();
  LstmLayout l;
  l.batch = c.input(1).dim(1);
  l.inputs = c.input(1).dim(2);
  l.cells = c.input(2).dim(1);
  l.peephole = op.bool_attr("use_peephole");
  // V1 has i, ci, f, o, and V2 i, f, ci, o.
  if (absl::EndsWith(op.name(), "V2")) std::swap(l.fresh, l.forget);
  if (const float* bias = op.attrs().Get<float>("forget_bias")) {
    l.forget_bias = *bias;
  }
  if (const float* clip = op.attrs().Get<float>("cell_clip")) l.clip = *clip;
  return l;
}

// How many steps count.
StatusOr<int64_t> StepsOf(const KernelContext& c) {
  const int64_t asked = *c.in<int64_t>(0), all = c.input(1).dim(0);
  if (asked >= 0 && asked <= all) return asked;
  return InvalidArgument("seq_len_max must be within [0, ", all,
                         "], the steps of x, but is ", asked);
}

template <typename T>
Status RunSequence(KernelContext& c) {
  const LstmLayout l = SequenceLayout(c);
  HR_ASSIGN_OR_RETURN(int64_t steps, StepsOf(c));
  // Steps at and after seq_len_max stay zero.
  for (int i = 0; i < 7; ++i) FillZero(c.output(i));
  if (l.state() == 0) return OkStatus();
  for (int64_t t = 0; t < steps; ++t) {
    auto out = [&](int i) { return c.out<T>(i) + t * l.state(); };
    // The outputs keep every step's state, so step t reads the one of t - 1
    // where it lies.
    const T* cs_prev = t > 0 ? out(1) - l.state() : c.in<T>(2);
    const T* h_prev = t > 0 ? out(6) - l.state() : c.in<T>(3);
    HR_RETURN_IF_ERROR(RunLstmStep<T>(
        l, {c.in<T>(1) + t * l.batch * l.inputs, cs_prev, h_prev, c.in<T>(4),
            c.in<T>(5), c.in<T>(6), c.in<T>(7), c.in<T>(8), out(0), out(1),
            out(2), out(3), out(4), out(5), out(6)}));
    // A long sequence is one kernel; between two steps it may be stopped.
    HR_RETURN_IF_ERROR(c.CheckCancelled());
  }
  return OkStatus();
}

// The way back through a sequence: what its steps share.
template <typename T>
class BackThroughTime {
 public:
  BackThroughTime(KernelContext& c, int64_t steps)
      : c_(c), l_(SequenceLayout(c)), steps_(steps) {}

  Status Run() {
    for (int i = 0; i < 8; ++i) FillZero(c_.output(i));
    if (l_.state() == 0 || steps_ == 0) return OkStatus();
    HR_RETURN_IF_ERROR(MakeRoom());
    // From the last step to the first: a step's gradient needs that of its
    // successor.
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      HR_RETURN_IF_ERROR(Step(t));
      HR_RETURN_IF_ERROR(c_.CheckCancelled());
    }
    // What is left in the buffers after the first step are the gradients at the
    // initial state.
    const float* peeps = peeps_.data<float>();
    Hand(1, cs_.data<float>(), l_.state());
    Hand(2, h_.data<float>(), l_.state());
    for (int k = 0; k < 3; ++k) Hand(4 + k, peeps + k * l_.cells, l_.cells);
    return Weights();
  }

 private:
  Status MakeRoom() {
    const int64_t rows = steps_ * l_.batch;
    HR_ASSIGN_OR_RETURN(gates_,
                        c_.Temporary(DTypeOf<T>, Shape{rows, l_.gates()}));
    HR_ASSIGN_OR_RETURN(rows_,
                        c_.Temporary(DTypeOf<T>, Shape{rows, l_.rows()}));
    HR_ASSIGN_OR_RETURN(back_,
                        c_.Temporary(DTypeOf<T>, Shape{l_.batch, l_.rows()}));
    for (Tensor* t : {&cs_, &h_, &cs_back_, &peeps_}) {
      // Sums over steps and images are kept in single precision, also for half.
      const int64_t n = t == &peeps_ ? 3 * l_.cells : l_.state();
      HR_ASSIGN_OR_RETURN(*t, c_.Temporary(DType::kFloat, Shape{n}));
      FillZero(*t);
    }
    return OkStatus();
  }
  const T* At(int input, int64_t t) const {
    return c_.in<T>(input) + t * l_.state();
  }
  void Hand(int output, const float* from, int64_t n) const {
    std::transform(from, from + n, c_.out<T>(output),
                   [](float v) { return T(v); });
  }

  Status Step(int64_t t) {
    float *cs = cs_.data<float>(), *h = h_.data<float>();
    for (int64_t i = 0; i < l_.state(); ++i) {
      // The gradient from outside (cs_grad, h_grad) joins the one that came
      // back from step t + 1.
      cs[i] += static_cast<float>(At(16, t)[i]);
      h[i] += static_cast<float>(At(17, t)[i]);
    }
    const T* x = c_.in<T>(1) + t * l_.batch * l_.inputs;
    const T* cs_prev = t > 0 ? At(10, t - 1) : c_.in<T>(2);
    const T* h_prev = t > 0 ? At(15, t - 1) : c_.in<T>(3);
    T* gates = gates_.data<T>() + t * l_.batch * l_.gates();
    float* peeps = peeps_.data<float>();
    RunLstmBack<T>(l_, {cs_prev, c_.in<T>(5), c_.in<T>(6), c_.in<T>(7),
                        At(9, t), At(10, t), At(11, t), At(12, t), At(13, t),
                        At(14, t), cs, h, cs_back_.data<float>(), peeps,
                        peeps + l_.cells, peeps + 2 * l_.cells, gates});
    // The gradient at the state before becomes the one at the state of the next
    // turn.
    std::swap(cs_, cs_back_);
    // Kept for the gradient of w, which is one product over all steps at the
    // end.
    JoinRows(l_, x, h_prev, rows_.data<T>() + t * l_.batch * l_.rows());
    HR_RETURN_IF_ERROR(
        Gemm(DTypeOf<T>,
             GemmDims::Dense(l_.batch, l_.rows(), l_.gates(), false, true),
             gates, c_.input(4).raw(), back_.raw()));
    const T* back = back_.data<T>();
    T* x_grad = c_.out<T>(0) + t * l_.batch * l_.inputs;
    for (int64_t n = 0; n < l_.batch; ++n, back += l_.rows()) {
      std::copy_n(back, l_.inputs, x_grad + n * l_.inputs);
      // The part behind the inputs is the gradient at h_prev, which the next
      // turn (step t - 1) begins with.
      std::copy_n(back + l_.inputs, l_.cells, h + n * l_.cells);
    }
    return OkStatus();
  }

  // Of all steps at once.
  Status Weights() const {
    const int64_t rows = steps_ * l_.batch;
    for (int64_t k = 0; k < l_.gates(); ++k) {
      float sum = 0;
      for (int64_t i = k; i < rows * l_.gates(); i += l_.gates()) {
        sum += static_cast<float>(gates_.data<T>()[i]);
      }
      c_.out<T>(7)[k] = T(sum);
    }
    return Gemm(DTypeOf<T>,
                GemmDims::Dense(l_.rows(), l_.gates(), rows, true, false),
                rows_.raw(), gates_.raw(), c_.output(3).raw());
  }

  KernelContext& c_;
  const LstmLayout l_;
  const int64_t steps_;
  // Gradients at all gates, and the rows that made them.
  Tensor gates_, rows_;
  // Gradients at the state, for the step at hand and the one before.
  Tensor cs_, h_, cs_back_, back_, peeps_;
};

template <typename T>
Status RunSequenceGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(int64_t steps, StepsOf(c));
  return BackThroughTime<T>(c, steps).Run();
}

StatusOr<Shape> SequenceShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 3));
  int64_t batch, cells;
  HR_RETURN_IF_ERROR(CheckLstmInputs(c, 1, &batch, &cells));
  const int64_t steps = c.input(1).known_rank() ? c.input(1)[0] : -1;
  return Shape::Make({steps, batch, cells}, /*allow_unknown=*/true);
}
Status BlockLstmShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape s, SequenceShape(c));
  for (int i = 0; i < 7; ++i) c.set_output(i, s);
  return OkStatus();
}
Status BlockLstmGradShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape s, SequenceShape(c));
  // The forward pass's seven results and the two gradients have one shape.
  for (int i = 9; i < 18; ++i) {
    if (c.input(i).CompatibleWith(s)) continue;
    return InvalidArgument(c.op().def().inputs[i].name, " must have shape ", s,
                           ", but has ", c.input(i));
  }
  // The gradients are in the order of the inputs x ... b and have their shapes;
  // input 0, the length, has none.
  for (int i = 0; i < 8; ++i) c.set_output(i, c.input(i + 1));
  return OkStatus();
}

Status BlockLstmGradient(GradientContext& g) {
  ValueList inputs(g.inputs().begin(), g.inputs().end());
  for (const Value& v : g.outputs()) inputs.push_back(v);
  // Only cs and h are meant to be used outside; upstream gives the other
  // results no gradient.
  inputs.push_back(g.grad_or_zeros(1));
  inputs.push_back(g.grad_or_zeros(6));
  const bool v2 = g.op().name() == "BlockLSTMV2";
  ValueList all = g.All(v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad", inputs,
                        {{"use_peephole", g.op().bool_attr("use_peephole")}});
  for (size_t i = 0; i < all.size(); ++i) {
    g.set(static_cast<int>(i) + 1, all[i]);
  }
  return g.status();
}

template <ComputeFn Float, ComputeFn Half>
ComputeFn PickSequence(const ResolvedOp& op) {
  return op.type_attr("T") == DType::kHalf ? Half : Float;
}

OpBuilder WithInputs(const char* name) {
  OpBuilder op(name);
  op.Input("seq_len_max: int64");
  for (const char* spec : {"x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T",
                           "wcf: T", "wco: T", "b: T"}) {
    op.Input(spec);
  }
  return op;
}
constexpr const char* kResults[] = {"i: T",  "cs: T", "f: T", "o: T",
                                    "ci: T", "co: T", "h: T"};

void RegisterSequence(const char* name, bool v2) {
  OpBuilder op = WithInputs(name);
  for (const char* spec : kResults) op.Output(spec);
  if (!v2) op.Attr("forget_bias: float = 1");
  op.Attr(v2 ? "cell_clip: float = 0" : "cell_clip: float = 3")
      .Attr("use_peephole: bool = false")
      .Attr("T: {half, float}")
      .Doc("A long short-term memory over the steps of a sequence.")
      .Shape(BlockLstmShape)
      .Gradient(BlockLstmGradient)
      .Cpu(ComputeFor<PickSequence<RunSequence<float>, RunSequence<half>>>)
      .Register();
}
void RegisterSequenceGrad(const char* name) {
  OpBuilder op = WithInputs(name);
  for (const char* spec : kResults) op.Input(spec);
  op.Input("cs_grad: T").Input("h_grad: T");
  for (const char* spec :
       {"x_grad: T", "cs_prev_grad: T", "h_prev_grad: T", "w_grad: T",
        "wci_grad: T", "wcf_grad: T", "wco_grad: T", "b_grad: T"}) {
    op.Output(spec);
  }
  op.Attr("use_peephole: bool")
      .Attr("T: {half, float}")
      .Doc("The gradient of a long short-term memory.")
      .Shape(BlockLstmGradShape)
      .Cpu(ComputeFor<
           PickSequence<RunSequenceGrad<float>, RunSequenceGrad<half>>>)
      .Register();
}

struct BlockLstmRegistrations {
  BlockLstmRegistrations() {
    RegisterSequence("BlockLSTM", false);
    RegisterSequence("BlockLSTMV2", true);
    RegisterSequenceGrad("BlockLSTMGrad");
    RegisterSequenceGrad("BlockLSTMGradV2");
  }
};
const BlockLstmRegistrations block_lstm_registrations;

}  // namespace
}  // namespace headrace
