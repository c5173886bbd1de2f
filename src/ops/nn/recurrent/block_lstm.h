// A long short-term memory with optional peepholes over the steps of a
// sequence, and the way back: what LSTMBlockCell, BlockLSTM and their gradient
// ops are made of.
#pragma once

#include <vector>

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

// What all steps share, and where they begin.
struct LstmInputs {
  const float *x, *cs_prev, *h_prev, *w, *wci, *wcf, *wco, *b;
};
// What steps give: [steps, batch, cells] each.
struct LstmResults {
  float *i, *cs, *f, *o, *ci, *co, *h;
};
// ResourceExhausted when memory ends; Cancelled between two steps.
Status RunLstm(const KernelContext& c, const LstmLayout& l, int64_t steps,
               const LstmInputs& in, const LstmResults& out);

// Of steps that gave `made`, at whose cs and h the gradients `cs_grad` and
// `h_grad` arrive.
struct LstmBackInputs {
  LstmInputs in;
  const float *i, *cs, *f, *o, *ci, *co, *h, *cs_grad, *h_grad;
};
struct LstmGradients {
  float *x, *cs_prev, *h_prev, *w, *wci, *wcf, *wco, *b;
};
Status RunLstmBack(const KernelContext& c, const LstmLayout& l, int64_t steps,
                   const LstmBackInputs& in, const LstmGradients& out);

// One step of it alone: `gates` [batch, 4 * cells] are set, as the weights'
// columns stand, and of `out` cs_prev and the peepholes'.
void RunLstmCellBack(const LstmLayout& l, const LstmBackInputs& in,
                     const LstmGradients& out, float* gates);

// A kernel's tensors in single precision: those of half are widened before it
// and rounded behind it, as its sums are to be exact.
class InFloat {
 public:
  // Of inputs from `first` on, and all outputs.
  static StatusOr<InFloat> Of(const KernelContext& c, int first);
  const float* in(int i) const { return in_[i]; }
  float* out(int i) const { return out_[i]; }
  // Rounds what the kernel made.
  void Finish(const KernelContext& c) const;

 private:
  std::vector<const float*> in_;
  std::vector<float*> out_;
  std::vector<Tensor> wide_;
};

// x, cs_prev, h_prev, w, wci, wcf, wco and b: inputs `first` and the seven
// behind it. Checks them (x's last two dimensions count); sets batch and cells,
// -1 where not known.
Status CheckLstmInputs(ShapeContext& c, int first, int64_t* batch,
                       int64_t* cells);
LstmInputs LstmInputsOf(const InFloat& t, int first);

}  // namespace headrace
