// Steps of a long short-term memory with optional peepholes, and the way back:
// what LSTMBlockCell, BlockLSTM and their gradient ops are made of.
#pragma once

#include "op/op.h"

namespace headrace {

// Sizes, and where the four gates' columns stand in the weights.
struct LstmLayout {
  int64_t batch = 0, inputs = 0, cells = 0;
  int64_t in = 0, fresh = 1, forget = 2, out = 3;
  bool peephole = false;
  float forget_bias = 0;
  float clip = 0;  // of the cells' states; none unless positive

  int64_t gates() const { return 4 * cells; }
  int64_t rows() const { return inputs + cells; }
  // Elements of a state, of all images.
  int64_t state() const { return batch * cells; }
};

// One step's tensors. `w`, `b` and the peepholes serve all steps.
template <typename T>
struct LstmStep {
  const T *x, *cs_prev, *h_prev, *w, *wci, *wcf, *wco, *b;
  T *i, *cs, *f, *o, *ci, *co, *h;
};

// One step's way back. The sums of peepholes' gradients grow; the others are
// set. `cs_grad` and `h_grad` arrive at the step's results.
template <typename T>
struct LstmBackStep {
  const T *cs_prev, *wci, *wcf, *wco, *i, *cs, *f, *o, *ci, *co;
  const float *cs_grad, *h_grad;
  float *cs_prev_grad, *wci_grad, *wcf_grad, *wco_grad;
  T* gate_grads;  // [batch, 4 * cells], as the weights' columns stand
};

// T is float or half. ResourceExhausted when memory ends.
template <typename T>
Status RunLstmStep(const LstmLayout& l, const LstmStep<T>& s);
template <typename T>
void RunLstmBack(const LstmLayout& l, const LstmBackStep<T>& s);

// The rows [x, h] that the weights are multiplied with.
template <typename T>
void JoinRows(const LstmLayout& l, const T* x, const T* h, T* rows);

// Checks x (its last two dimensions count), cs_prev, h_prev, w, wci, wcf, wco
// and b, inputs `first` and the seven behind it; sets batch and cells, -1 where
// not known.
Status CheckLstmInputs(ShapeContext& c, int first, int64_t* batch,
                       int64_t* cells);

}  // namespace headrace
