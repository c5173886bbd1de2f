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

template <typename T>
Status RunLstmCell(KernelContext& c) {
  LstmLayout l = CellLayout(c);
  l.forget_bias = c.op().float_attr("forget_bias");
  l.clip = c.op().float_attr("cell_clip");
  // A product of no rows has no place to write to.
  if (l.state() == 0) return OkStatus();
  return RunLstmStep<T>(
      l, {c.in<T>(0), c.in<T>(1), c.in<T>(2), c.in<T>(3), c.in<T>(4),
          c.in<T>(5), c.in<T>(6), c.in<T>(7), c.out<T>(0), c.out<T>(1),
          c.out<T>(2), c.out<T>(3), c.out<T>(4), c.out<T>(5), c.out<T>(6)});
}

// Input `i` in single precision.
template <typename T>
StatusOr<Tensor> WideInput(const KernelContext& c, int i) {
  const Tensor& x = c.input(i);
  HR_ASSIGN_OR_RETURN(Tensor wide, c.Temporary(DType::kFloat, x.shape()));
  std::copy_n(c.in<T>(i), x.num_elements(), wide.data<float>());
  return wide;
}

template <typename T>
Status RunLstmCellGrad(KernelContext& c) {
  const LstmLayout l = CellLayout(c);
  // The way back is computed in single precision for half, too, as its sums
  // are.
  HR_ASSIGN_OR_RETURN(Tensor cs_grad, WideInput<T>(c, 14));
  HR_ASSIGN_OR_RETURN(Tensor h_grad, WideInput<T>(c, 15));
  // cs_prev_grad and the peepholes' gradients, one after another.
  HR_ASSIGN_OR_RETURN(
      Tensor made, c.Temporary(DType::kFloat, Shape{l.state() + 3 * l.cells}));
  float* sums = made.data<float>();
  std::fill_n(sums, made.num_elements(), 0.0f);
  float* peeps = sums + l.state();
  RunLstmBack<T>(
      l, {c.in<T>(1), c.in<T>(4), c.in<T>(5), c.in<T>(6), c.in<T>(8),
          c.in<T>(9), c.in<T>(10), c.in<T>(11), c.in<T>(12), c.in<T>(13),
          cs_grad.data<float>(), h_grad.data<float>(), sums, peeps,
          peeps + l.cells, peeps + 2 * l.cells, c.out<T>(1)});
  auto hand = [&](int output, const float* from, int64_t n) {
    std::transform(from, from + n, c.out<T>(output),
                   [](float v) { return T(v); });
  };
  hand(0, sums, l.state());
  for (int k = 0; k < 3; ++k) hand(2 + k, peeps + k * l.cells, l.cells);
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

ComputeFn PickLstmCell(const ResolvedOp& op) {
  return op.type_attr("T") == DType::kHalf ? RunLstmCell<half>
                                           : RunLstmCell<float>;
}
ComputeFn PickLstmCellGrad(const ResolvedOp& op) {
  return op.type_attr("T") == DType::kHalf ? RunLstmCellGrad<half>
                                           : RunLstmCellGrad<float>;
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
        .Cpu(ComputeFor<PickLstmCell>),
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
        .Cpu(ComputeFor<PickLstmCellGrad>),
};

}  // namespace
}  // namespace headrace
