// GRUBlockCell and GRUBlockCellGrad: one step of a gated recurrent unit.
#include <algorithm>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/math/products/gemm.h"
#include "ops/nn/recurrent/gate_loops.h"

namespace headrace {
namespace {

// Checks the sizes of the inputs x, h_prev, w_ru, w_c, b_ru, b_c; -1 where one
// is not known.
Status CheckGruInputs(ShapeContext& c, int64_t* batch_size,
                      int64_t* inputs_size, int64_t* cells_size) {
  for (int i = 0; i < 4; ++i) HR_RETURN_IF_ERROR(CheckRank(c.input(i), 2));
  for (int i = 4; i < 6; ++i) HR_RETURN_IF_ERROR(CheckRank(c.input(i), 1));
  auto dim = [&](int input, int d) {
    return c.input(input).known_rank() ? c.input(input)[d] : -1;
  };
  // -1 is an unknown size, so the larger one is the known one.
  const int64_t batch = std::max(dim(0, 0), dim(1, 0));
  const int64_t inputs = dim(0, 1), cells = dim(1, 1);
  auto differs = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  // The weights multiply [x, h] joined, and w_ru has the reset and the update
  // gate side by side.
  const int64_t rows = inputs >= 0 && cells >= 0 ? inputs + cells : -1;
  const int64_t twice = cells >= 0 ? 2 * cells : -1;
  if (differs(dim(0, 0), dim(1, 0)) || differs(dim(2, 0), rows) ||
      differs(dim(2, 1), twice) || differs(dim(3, 0), rows) ||
      differs(dim(3, 1), cells) || differs(dim(4, 0), twice) ||
      differs(dim(5, 0), cells)) {
    return InvalidArgument("sizes do not agree: x ", c.input(0), ", h_prev ",
                           c.input(1), ", w_ru ", c.input(2), ", w_c ",
                           c.input(3), ", b_ru ", c.input(4), ", b_c ",
                           c.input(5));
  }
  *batch_size = batch;
  *inputs_size = inputs;
  *cells_size = cells;
  return OkStatus();
}

Status CellShape(ShapeContext& c) {
  int64_t batch, inputs, cells;
  HR_RETURN_IF_ERROR(CheckGruInputs(c, &batch, &inputs, &cells));
  for (int i = 0; i < 4; ++i) c.set_output(i, Shape{batch, cells});
  return OkStatus();
}

Status CellGradShape(ShapeContext& c) {
  int64_t batch, inputs, cells;
  HR_RETURN_IF_ERROR(CheckGruInputs(c, &batch, &inputs, &cells));
  const Shape state{batch, cells};
  for (int i = 6; i < 10; ++i) {
    if (c.input(i).CompatibleWith(state)) continue;
    return InvalidArgument(c.op().def().inputs[i].name, " must have shape ",
                           state, ", but has ", c.input(i));
  }
  c.set_output(0, Shape{batch, inputs});
  c.set_output(1, state);
  c.set_output(2, state);
  c.set_output(3, Shape{batch, cells < 0 ? cells : 2 * cells});
  return OkStatus();
}

// y = rows * w of input `w`, for row-major rows [batch, k], w [k, n].
Status Multiply(const KernelContext& c, const Tensor& rows, int w, Tensor& y) {
  return Gemm(DType::kFloat,
              GemmDims::Dense(rows.dim(0), y.dim(1), rows.dim(1), false, false),
              rows.raw(), c.input(w).raw(), y.raw());
}

constexpr double kGruGatesNs = 1.5, kGruStateNs = 1;  // of a cell

Status RunCell(KernelContext& c) {
  const int64_t batch = c.input(0).dim(0), inputs = c.input(0).dim(1);
  const int64_t cells = c.input(1).dim(1), k = inputs + cells;
  if (batch == 0 || cells == 0) return OkStatus();
  HR_ASSIGN_OR_RETURN(Tensor both, c.Temporary(DType::kFloat, Shape{batch, k}));
  HR_ASSIGN_OR_RETURN(Tensor gates,
                      c.Temporary(DType::kFloat, Shape{batch, 2 * cells}));
  const float *x = c.in<float>(0), *before = c.in<float>(1);
  float* row = both.data<float>();
  for (int64_t i = 0; i < batch; ++i) {
    std::copy_n(x + i * inputs, inputs, row + i * k);
    std::copy_n(before + i * cells, cells, row + i * k + inputs);
  }
  HR_RETURN_IF_ERROR(Multiply(c, both, 2, gates));
  const GateLoops& loops = LoopsOfGates();
  float *r = c.out<float>(0), *u = c.out<float>(1);
  const float* bias = c.in<float>(4);
  ParallelFor(batch, kGruGatesNs * cells, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* sums = gates.data<float>() + i * 2 * cells;
      const int64_t at = i * cells;
      // The fresh state is made of [x, r * h]: the second half of the joined
      // row is overwritten for the second product.
      loops.gru_gates(sums, bias, sums + cells, bias + cells, before + at,
                      r + at, u + at, row + i * k + inputs, cells);
    }
  });
  // The output holds the sums first and their tanh afterwards, so no further
  // buffer is needed.
  HR_RETURN_IF_ERROR(Multiply(c, both, 3, c.output(2)));
  float *fresh = c.out<float>(2), *h = c.out<float>(3);
  ParallelFor(batch, kGruStateNs * cells, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * cells; at < end * cells; at += cells) {
      loops.gru_state(c.in<float>(5), u + at, before + at, fresh + at, h + at,
                      cells);
    }
  });
  return OkStatus();
}

// rows = grads * w transposed, for row-major grads [batch, n], w [k, n].
Status BackThrough(const Tensor& grads, const Tensor& w, const Tensor& rows) {
  return Gemm(DType::kFloat,
              GemmDims::Dense(rows.dim(0), w.dim(0), w.dim(1), false, true),
              grads.raw(), w.raw(), rows.raw());
}

Status RunCellGrad(KernelContext& c) {
  const int64_t batch = c.input(0).dim(0), inputs = c.input(0).dim(1);
  const int64_t cells = c.input(1).dim(1), k = inputs + cells;
  for (int i = 0; i < 4; ++i) FillZero(c.output(i));
  if (batch == 0 || cells == 0) return OkStatus();
  const Shape rows{batch, k};
  HR_ASSIGN_OR_RETURN(Tensor fresh_rows, c.Temporary(DType::kFloat, rows));
  HR_ASSIGN_OR_RETURN(Tensor gate_rows, c.Temporary(DType::kFloat, rows));
  const float *before = c.in<float>(1), *r = c.in<float>(6),
              *u = c.in<float>(7), *fresh = c.in<float>(8),
              *d_h = c.in<float>(9);
  float *d_x = c.out<float>(0), *d_before = c.out<float>(1),
        *d_fresh = c.out<float>(2), *d_gates = c.out<float>(3);
  for (int64_t at = 0; at < batch * cells; ++at) {
    // h = (1 - u) * fresh + u * before and fresh = tanh(sum), so this is the
    // gradient at the sum.
    d_fresh[at] = d_h[at] * (1 - u[at]) * (1 - fresh[at] * fresh[at]);
  }
  HR_RETURN_IF_ERROR(BackThrough(c.output(2), c.input(3), fresh_rows));
  for (int64_t i = 0; i < batch; ++i) {
    const float* d_reset = fresh_rows.data<float>() + i * k + inputs;
    for (int64_t j = 0; j < cells; ++j) {
      const int64_t at = i * cells + j;
      float* gates = d_gates + i * 2 * cells;
      // The reset gate scaled the old state, and r(1 - r) is the logistic
      // function's derivative.
      gates[j] = d_reset[j] * before[at] * r[at] * (1 - r[at]);
      gates[cells + j] =
          d_h[at] * (before[at] - fresh[at]) * u[at] * (1 - u[at]);
    }
  }
  HR_RETURN_IF_ERROR(BackThrough(c.output(3), c.input(2), gate_rows));
  for (int64_t i = 0; i < batch; ++i) {
    const float* a = fresh_rows.data<float>() + i * k;
    const float* b = gate_rows.data<float>() + i * k;
    for (int64_t j = 0; j < inputs; ++j) d_x[i * inputs + j] = a[j] + b[j];
    for (int64_t j = 0; j < cells; ++j) {
      const int64_t at = i * cells + j;
      // The old state comes in three ways: through the gates, through the reset
      // state and through u itself.
      d_before[at] = b[inputs + j] + a[inputs + j] * r[at] + d_h[at] * u[at];
    }
  }
  return OkStatus();
}

HR_OP(GRUBlockCell)
    .Input("x: T")
    .Input("h_prev: T")
    .Input("w_ru: T")
    .Input("w_c: T")
    .Input("b_ru: T")
    .Input("b_c: T")
    .Output("r: T")
    .Output("u: T")
    .Output("c: T")
    .Output("h: T")
    .Attr("T: {float}")
    .Doc("One step of a gated recurrent unit: gates, candidate, new state.")
    .Shape(CellShape)
    .Cpu(Compute<RunCell>);

HR_OP(GRUBlockCellGrad)
    .Input("x: T")
    .Input("h_prev: T")
    .Input("w_ru: T")
    .Input("w_c: T")
    .Input("b_ru: T")
    .Input("b_c: T")
    .Input("r: T")
    .Input("u: T")
    .Input("c: T")
    .Input("d_h: T")
    .Output("d_x: T")
    .Output("d_h_prev: T")
    .Output("d_c_bar: T")
    .Output("d_r_bar_u_bar: T")
    .Attr("T: {float}")
    .Doc("The way back of GRUBlockCell, up to its candidate and gates.")
    .Shape(CellGradShape)
    .Cpu(Compute<RunCellGrad>);

}  // namespace
}  // namespace headrace
