#include "ops/nn/recurrent/gate_loops.h"

#include "base/numbers/vector_math.h"
#include "ops/math/loops/float_math_512.h"

namespace headrace::HR_LEVEL {
namespace {

// Some cells of a row: sixteen with AVX-512, the last ones by a mask; else one,
// of which the compiler makes vectors.
#if defined(__AVX512F__)
using Cells = __m512;
constexpr int64_t kCells = 16;
HR_VECTOR Cells Load(const float* p, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, p);
}
HR_VECTOR void Store(float* p, Cells v, __mmask16 lanes) {
  _mm512_mask_storeu_ps(p, lanes, v);
}
HR_VECTOR Cells All(float v) { return _mm512_set1_ps(v); }
HR_VECTOR Cells Clip(Cells x, Cells least, Cells most) {
  // Where one operand is a NaN, the second comes out.
  return _mm512_max_ps(least, _mm512_min_ps(most, x));
}
#else
using Cells = float;
constexpr int64_t kCells = 1;
HR_VECTOR bool FirstLanes(int64_t) { return true; }
HR_VECTOR Cells Load(const float* p, bool) { return *p; }
HR_VECTOR void Store(float* p, Cells v, bool) { *p = v; }
HR_VECTOR Cells All(float v) { return v; }
HR_VECTOR Cells Clip(Cells x, Cells least, Cells most) {
  x = x > most ? most : x;
  return x < least ? least : x;
}
#endif

template <bool kPeephole>
void LstmCells(const LstmRow& given, int64_t n) {
  const LstmRow r = given;  // what is stored does not change the pointers
  const Cells more = All(r.more_forget);
  const Cells most = All(r.clip), least = All(-r.clip);
#pragma GCC ivdep
  for (int64_t k = 0; k < n; k += kCells) {
    const auto lanes = FirstLanes(n - k);
    const auto sum = [&](const LstmRow::Gate& g) [[gnu::always_inline]] {
      return Load(g.sums + k, lanes) + Load(g.bias + k, lanes);
    };
    const Cells before = Load(r.before + k, lanes);
    Cells in = sum(r.in), forget = sum(r.forget) + more, out = sum(r.out);
    // Peepholes read the old state for the input and forget gates and the new
    // one for the output gate.
    if (kPeephole) {
      in += Load(r.peep_in + k, lanes) * before;
      forget += Load(r.peep_forget + k, lanes) * before;
    }
    const Cells i = Sigmoid(in), f = Sigmoid(forget), ci = Tanh(sum(r.fresh));
    const Cells cs = Clip(ci * i + before * f, least, most);
    if (kPeephole) out += Load(r.peep_out + k, lanes) * cs;
    const Cells o = Sigmoid(out), co = Tanh(cs);
    Store(r.i + k, i, lanes);
    Store(r.f + k, f, lanes);
    Store(r.ci + k, ci, lanes);
    Store(r.cs + k, cs, lanes);
    Store(r.o + k, o, lanes);
    Store(r.co + k, co, lanes);
    Store(r.h + k, o * co, lanes);
  }
}

template <bool kPeephole>
void LstmBackCells(const LstmBackRow& given, int64_t n) {
  const LstmBackRow r = given;
  const Cells one = All(1);
#pragma GCC ivdep
  for (int64_t k = 0; k < n; k += kCells) {
    const auto lanes = FirstLanes(n - k);
    const auto in = [&](const float* p)
                        [[gnu::always_inline]] { return Load(p + k, lanes); };
    const Cells i = in(r.i), f = in(r.f), o = in(r.o), ci = in(r.ci),
                co = in(r.co), before = in(r.before), h_grad = in(r.h_grad);
    // s(1 - s) is the derivative of the logistic function at its result s, 1 -
    // t^2 that of tanh at its result t.
    const Cells out = o * (one - o) * h_grad * co;
    Cells state = (one - co * co) * h_grad * o + in(r.cs_grad);
    // The output gate read the new state, so its gradient flows into the state
    // before that goes further back.
    if (kPeephole) state += out * in(r.peep_out);
    const Cells fresh = (one - ci * ci) * state * i;
    const Cells forget = f * (one - f) * state * before;
    const Cells gate = i * (one - i) * state * ci;
    Cells back = state * f;
    if (kPeephole) {
      // The input and forget gates read the old state.
      back += gate * in(r.peep_in) + forget * in(r.peep_forget);
      // Added: the peepholes are the same for all images and steps, and the
      // caller begins with zeros.
      Store(r.peep_in_grad + k, in(r.peep_in_grad) + gate * before, lanes);
      Store(r.peep_forget_grad + k, in(r.peep_forget_grad) + forget * before,
            lanes);
      Store(r.peep_out_grad + k, in(r.peep_out_grad) + out * in(r.cs), lanes);
    }
    Store(r.before_grad + k, back, lanes);
    Store(r.in + k, gate, lanes);
    Store(r.fresh + k, fresh, lanes);
    Store(r.forget + k, forget, lanes);
    Store(r.out + k, out, lanes);
  }
}

void Lstm(const LstmRow& r, int64_t n) {
  r.peep_in ? LstmCells<true>(r, n) : LstmCells<false>(r, n);
}
void LstmBack(const LstmBackRow& r, int64_t n) {
  r.peep_in ? LstmBackCells<true>(r, n) : LstmBackCells<false>(r, n);
}

void GruGates(const float* r_sums, const float* r_bias, const float* u_sums,
              const float* u_bias, const float* before, float* r, float* u,
              float* mixed, int64_t n) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; k += kCells) {
    const auto lanes = FirstLanes(n - k);
    const Cells reset =
        Sigmoid(Load(r_sums + k, lanes) + Load(r_bias + k, lanes));
    Store(r + k, reset, lanes);
    Store(u + k, Sigmoid(Load(u_sums + k, lanes) + Load(u_bias + k, lanes)),
          lanes);
    Store(mixed + k, Load(before + k, lanes) * reset, lanes);
  }
}

void GruState(const float* bias, const float* u, const float* before,
              float* fresh, float* h, int64_t n) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; k += kCells) {
    const auto lanes = FirstLanes(n - k);
    const Cells c = Tanh(Load(fresh + k, lanes) + Load(bias + k, lanes));
    const Cells update = Load(u + k, lanes);
    Store(fresh + k, c, lanes);
    // u near 1 keeps the old state, as in Cho et al.
    Store(h + k, (All(1) - update) * c + update * Load(before + k, lanes),
          lanes);
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const GateLoops* GateLoopsOf<CpuLevel::HR_LEVEL>() {
  static constexpr GateLoops loops = {Lstm, LstmBack, GruGates, GruState};
  return &loops;
}

}  // namespace headrace
