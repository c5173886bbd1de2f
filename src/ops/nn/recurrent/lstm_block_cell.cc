// LSTMBlockCell and LSTMBlockCellGrad: one step.
#include <algorithm>

#include "ops/nn/recurrent/block_lstm.h"

namespace headrace {
namespace {

LstmLayout CellLayout(const KernelContext& c) {
  LstmLayout l;
  l.batch = c.input(0).dim(0);
  l.inputs = c.input(0).dim(1);
  l.cells = c.input(1).dim(1);
  l.peephole = c.op().bool_attr("use_peephole");
  return l;
}

Status RunLstmCell(KernelContext& c) {
  LstmLayout l = CellLayout(c);
  l.forget_bias = c.op().float_attr("forget_bias");
  l.clip = c.op().float_attr("cell_clip");
  HR_ASSIGN_OR_RETURN(const InFloat t, InFloat::Of(c, 0));
  HR_RETURN_IF_ERROR(RunLstm(
      c, l, 1, LstmInputsOf(t, 0),
      {t.out(0), t.out(1), t.out(2), t.out(3), t.out(4), t.out(5), t.out(6)}));
  t.Finish(c);
  return OkStatus();
}

Status RunLstmCellGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const InFloat t, InFloat::Of(c, 0));
  RunLstmCellBack(
      CellLayout(c),
      {LstmInputsOf(t, 0), t.in(8), t.in(9), t.in(10), t.in(11), t.in(12),
       t.in(13), nullptr, t.in(14), t.in(15)},
      {.cs_prev = t.out(0), .wci = t.out(2), .wcf = t.out(3), .wco = t.out(4)},
      t.out(1));
  t.Finish(c);
  return OkStatus();
}

Status LstmCellShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  int64_t batch, cells;
  HR_RETURN_IF_ERROR(CheckLstmInputs(c, 0, &batch, &cells));
  for (int i = 0; i < 7; ++i) c.set_output(i, Shape{batch, cells});
  return OkStatus();
}
Status LstmCellGradShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  int64_t batch, cells;
  HR_RETURN_IF_ERROR(CheckLstmInputs(c, 0, &batch, &cells));
  const Shape state{batch, cells};
  for (int i = 8; i < 16; ++i) {
    if (c.input(i).CompatibleWith(state)) continue;
    return InvalidArgument(c.op().def().inputs[i].name, " must have shape ",
                           state, ", but has ", c.input(i));
  }
  c.set_output(0, state);
  c.set_output(1, Shape{batch, cells < 0 ? cells : 4 * cells});
  for (int i = 2; i < 5; ++i) c.set_output(i, Shape{cells});
  return OkStatus();
}

OpBuilder LstmCellOp(const char* name) {
  OpBuilder b(name);
  b.Input("x: T")
      .Input("cs_prev: T")
      .Input("h_prev: T")
      .Input("w: T")
      .Input("wci: T")
      .Input("wcf: T")
      .Input("wco: T")
      .Input("b: T");
  return b;
}
[[maybe_unused]] const OpRegistrar kLstmCells[] = {
    LstmCellOp("LSTMBlockCell")
        .Output("i: T")
        .Output("cs: T")
        .Output("f: T")
        .Output("o: T")
        .Output("ci: T")
        .Output("co: T")
        .Output("h: T")
        .Attr("forget_bias: float = 1")
        .Attr("cell_clip: float = 3")
        .Attr("use_peephole: bool = false")
        .Attr("T: {half, float}")
        .Doc("One step of a long short-term memory.")
        .Shape(LstmCellShape)
        .Cpu(Compute<RunLstmCell>),
    LstmCellOp("LSTMBlockCellGrad")
        .Input("i: T")
        .Input("cs: T")
        .Input("f: T")
        .Input("o: T")
        .Input("ci: T")
        .Input("co: T")
        .Input("cs_grad: T")
        .Input("h_grad: T")
        .Output("cs_prev_grad: T")
        .Output("dicfo: T")
        .Output("wci_grad: T")
        .Output("wcf_grad: T")
        .Output("wco_grad: T")
        .Attr("use_peephole: bool")
        .Attr("T: {half, float}")
        .Doc("The way back of LSTMBlockCell, up to its gates.")
        .Shape(LstmCellGradShape)
        .Cpu(Compute<RunLstmCellGrad>),
};

}  // namespace
}  // namespace headrace
