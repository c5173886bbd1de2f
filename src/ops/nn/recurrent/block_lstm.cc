#include "ops/nn/recurrent/block_lstm.h"

#include <algorithm>
#include <cmath>

#include "ops/math/products/gemm.h"

namespace headrace {
namespace {

float Logistic(float v) { return 1 / (1 + std::exp(-v)); }

// The size that several inputs must agree on.
class Agreed {
 public:
  // False when another is known already.
  bool Add(int64_t size) {
    // -1 is an unknown size, which agrees with all.
    if (size >= 0 && size_ >= 0 && size != size_) return false;
    size_ = std::max(size, size_);
    return true;
  }
  int64_t size() const { return size_; }

 private:
  int64_t size_ = -1;
};

}  // namespace

template <typename T>
void JoinRows(const LstmLayout& l, const T* x, const T* h, T* rows) {
  for (int64_t n = 0; n < l.batch; ++n, rows += l.rows()) {
    // [x, h] * w is x * w_x + h * w_h in one product.
    std::copy_n(x + n * l.inputs, l.inputs, rows);
    std::copy_n(h + n * l.cells, l.cells, rows + l.inputs);
  }
}

template <typename T>
Status RunLstmStep(const LstmLayout& l, const LstmStep<T>& s) {
  HR_ASSIGN_OR_RETURN(Tensor rows,
                      Tensor::Allocate(DTypeOf<T>, Shape{l.batch, l.rows()}));
  HR_ASSIGN_OR_RETURN(Tensor gates,
                      Tensor::Allocate(DTypeOf<T>, Shape{l.batch, l.gates()}));
  JoinRows(l, s.x, s.h_prev, rows.data<T>());
  HR_RETURN_IF_ERROR(Gemm(
      DTypeOf<T>, GemmDims::Dense(l.batch, l.gates(), l.rows(), false, false),
      rows.raw(), s.w, gates.raw()));
  for (int64_t n = 0; n < l.batch; ++n) {
    const T* gate = gates.data<T>() + n * l.gates();
    for (int64_t k = 0; k < l.cells; ++k) {
      const int64_t at = n * l.cells + k;
      auto sum = [&](int64_t place) {
        const int64_t column = place * l.cells + k;
        return static_cast<float>(gate[column]) +
               static_cast<float>(s.b[column]);
      };
      const auto before = static_cast<float>(s.cs_prev[at]);
      auto peep = [&](const T* weights, float state) {
        return l.peephole ? static_cast<float>(weights[k]) * state : 0;
      };
      // The LSTM of Gers and Schmidhuber with peepholes, which read the old
      // state for the input and forget gates and the new one for the output
      // gate.
      const float i = Logistic(sum(l.in) + peep(s.wci, before));
      // The forget bias keeps a young cell's state: without it the gate would
      // begin half shut.
      const float f =
          Logistic(sum(l.forget) + l.forget_bias + peep(s.wcf, before));
      const float ci = std::tanh(sum(l.fresh));
      float cs = ci * i + before * f;
      // Zero or less means that nothing is clipped.
      if (l.clip > 0) cs = std::clamp(cs, -l.clip, l.clip);
      const float o = Logistic(sum(l.out) + peep(s.wco, cs));
      const float co = std::tanh(cs);
      s.i[at] = T(i);
      s.f[at] = T(f);
      s.ci[at] = T(ci);
      s.cs[at] = T(cs);
      s.o[at] = T(o);
      s.co[at] = T(co);
      s.h[at] = T(o * co);
    }
  }
  return OkStatus();
}

template <typename T>
void RunLstmBack(const LstmLayout& l, const LstmBackStep<T>& s) {
  for (int64_t n = 0; n < l.batch; ++n) {
    T* grads = s.gate_grads + n * l.gates();
    for (int64_t k = 0; k < l.cells; ++k) {
      const int64_t at = n * l.cells + k;
      auto in = [&](const T* from) { return static_cast<float>(from[at]); };
      const float i = in(s.i), f = in(s.f), o = in(s.o), ci = in(s.ci),
                  co = in(s.co), before = in(s.cs_prev);
      // s(1 - s) is the derivative of the logistic function at its result s, 1
      // - t^2 that of tanh at its result t.
      const float out = o * (1 - o) * s.h_grad[at] * co;
      float state = (1 - co * co) * s.h_grad[at] * o + s.cs_grad[at];
      // The output gate read the new state, so its gradient flows into the
      // state before that goes further back.
      if (l.peephole) state += out * static_cast<float>(s.wco[k]);
      const float fresh = (1 - ci * ci) * state * i;
      const float forget = f * (1 - f) * state * before;
      const float gate = i * (1 - i) * state * ci;
      float back = state * f;
      if (l.peephole) {
        // The input and forget gates read the old state.
        back += gate * static_cast<float>(s.wci[k]) +
                forget * static_cast<float>(s.wcf[k]);
        // Added: the peepholes are the same for all images and steps, and the
        // caller begins with zeros.
        s.wci_grad[k] += gate * before;
        s.wcf_grad[k] += forget * before;
        s.wco_grad[k] += out * in(s.cs);
      }
      s.cs_prev_grad[at] = back;
      grads[l.in * l.cells + k] = T(gate);
      grads[l.fresh * l.cells + k] = T(fresh);
      grads[l.forget * l.cells + k] = T(forget);
      grads[l.out * l.cells + k] = T(out);
    }
  }
}

Status CheckLstmInputs(ShapeContext& c, int first, int64_t* batch,
                       int64_t* cells) {
  Agreed images, inputs, states, rows, gates;
  bool agree = true;
  auto dim = [&](int input, int from_end) {
    const Shape& s = c.input(first + input);
    return s.known_rank() ? s[s.rank() - from_end] : Shape::kUnknown;
  };
  for (int i : {1, 2, 3}) HR_RETURN_IF_ERROR(CheckRank(c.input(first + i), 2));
  for (int i : {4, 5, 6, 7}) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(first + i), 1));
  }
  inputs.Add(dim(0, 1));
  for (int i : {0, 1, 2}) agree &= images.Add(dim(i, 2));
  for (int i : {1, 2, 4, 5, 6}) agree &= states.Add(dim(i, 1));
  for (int i : {3, 7}) agree &= gates.Add(dim(i, 1));
  rows.Add(dim(3, 2));
  // The four gates lie side by side in w and b.
  if (agree && states.size() >= 0) {
    int64_t four;
    agree &= MultiplyChecked(states.size(), 4, &four) && gates.Add(four);
    if (inputs.size() >= 0) agree &= rows.Add(inputs.size() + states.size());
  }
  *batch = images.size();
  *cells = states.size();
  if (agree) return OkStatus();
  return InvalidArgument("sizes do not agree: x ", c.input(first), ", cs_prev ",
                         c.input(first + 1), ", h_prev ", c.input(first + 2),
                         ", w ", c.input(first + 3), ", wci ",
                         c.input(first + 4), ", wcf ", c.input(first + 5),
                         ", wco ", c.input(first + 6), ", b ",
                         c.input(first + 7));
}

template void JoinRows(const LstmLayout&, const float*, const float*, float*);
template void JoinRows(const LstmLayout&, const half*, const half*, half*);
template Status RunLstmStep(const LstmLayout&, const LstmStep<float>&);
template Status RunLstmStep(const LstmLayout&, const LstmStep<half>&);
template void RunLstmBack(const LstmLayout&, const LstmBackStep<float>&);
template void RunLstmBack(const LstmLayout&, const LstmBackStep<half>&);

}  // namespace headrace
