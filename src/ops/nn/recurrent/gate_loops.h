// The inner loops of recurrent cells: what becomes of a row's sums, one set a
// level of the instruction set.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// A row of a step of a long short-term memory with optional peepholes (Gers and
// Schmidhuber). Pointers are to the row's cells.
struct LstmRow {
  // A gate's sum is sums[k] + bias[k].
  struct Gate {
    const float *sums, *bias;
  };
  Gate in, fresh, forget, out;
  float more_forget;    // added to the forget gate's sums
  float clip;           // of the state; infinity for none
  const float* before;  // the state
  // Null without peepholes.
  const float *peep_in, *peep_forget, *peep_out;
  float *i, *cs, *f, *o, *ci, *co, *h;
};

// The way back. What arrives at the state and at h (`cs_grad`, `h_grad`) may be
// where `before_grad` is stored. Sums of the peepholes' gradients grow.
struct LstmBackRow {
  const float *before, *i, *cs, *f, *o, *ci, *co;
  const float *cs_grad, *h_grad;
  const float *peep_in, *peep_forget, *peep_out;
  float *before_grad, *peep_in_grad, *peep_forget_grad, *peep_out_grad;
  // Gradients at the gates' sums.
  float *in, *fresh, *forget, *out;
};

// Of n cells each.
struct GateLoops {
  void (*lstm)(const LstmRow& r, int64_t n);
  void (*lstm_back)(const LstmBackRow& r, int64_t n);
  // r, u = sigmoid(sums + bias), `mixed` = before * r.
  void (*gru_gates)(const float* r_sums, const float* r_bias,
                    const float* u_sums, const float* u_bias,
                    const float* before, float* r, float* u, float* mixed,
                    int64_t n);
  // fresh = tanh(fresh + bias), h = (1 - u) * fresh + u * before.
  void (*gru_state)(const float* bias, const float* u, const float* before,
                    float* fresh, float* h, int64_t n);
};

// Those of this machine.
const GateLoops& LoopsOfGates();

// What the files of a level give away.
template <CpuLevel kLevel>
const GateLoops* GateLoopsOf();

}  // namespace headrace
