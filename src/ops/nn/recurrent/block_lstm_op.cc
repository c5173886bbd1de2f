// BlockLSTM, BlockLSTMV2 and their gradient ops: all steps of a sequence.
#include <algorithm>

#include "absl/strings/match.h"
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

Status RunSequence(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(int64_t steps, StepsOf(c));
  HR_ASSIGN_OR_RETURN(const InFloat t, InFloat::Of(c, 1));
  const LstmLayout l = SequenceLayout(c);
  // Steps at and after seq_len_max stay zero.
  const int64_t made = steps * l.state();
  const int64_t all = c.output(0).num_elements();
  for (int i = 0; i < 7; ++i) std::fill(t.out(i) + made, t.out(i) + all, 0.0f);
  HR_RETURN_IF_ERROR(RunLstm(
      c, l, steps, LstmInputsOf(t, 1),
      {t.out(0), t.out(1), t.out(2), t.out(3), t.out(4), t.out(5), t.out(6)}));
  t.Finish(c);
  return OkStatus();
}

Status RunSequenceGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(int64_t steps, StepsOf(c));
  HR_ASSIGN_OR_RETURN(const InFloat t, InFloat::Of(c, 1));
  const LstmLayout l = SequenceLayout(c);
  for (int i = 0; i < 8; ++i) {
    std::fill_n(t.out(i), c.output(i).num_elements(), 0.0f);
  }
  HR_RETURN_IF_ERROR(
      RunLstmBack(c, l, steps,
                  {LstmInputsOf(t, 1), t.in(9), t.in(10), t.in(11), t.in(12),
                   t.in(13), t.in(14), t.in(15), t.in(16), t.in(17)},
                  {t.out(0), t.out(1), t.out(2), t.out(3), t.out(4), t.out(5),
                   t.out(6), t.out(7)}));
  t.Finish(c);
  return OkStatus();
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
      .Cpu(Compute<RunSequence>)
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
      .Cpu(Compute<RunSequenceGrad>)
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
