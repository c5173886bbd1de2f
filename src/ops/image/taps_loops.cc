#include "ops/image/taps_loops.h"

namespace headrace::HR_LEVEL {
namespace {

// Forced inline, for each level of the instruction set its own copy.
#define HR_INLINE [[gnu::always_inline]] static inline

typedef float Four __attribute__((vector_size(16)));
typedef float FourAnywhere __attribute__((vector_size(16), aligned(4)));

HR_INLINE Four Load(const float* p) {
  return *reinterpret_cast<const FourAnywhere*>(p);
}

// One output of a known number of channels.
template <int kChannels>
HR_INLINE void Sum(const TapRows& taps, int64_t o, const float* in,
                   float* out) {
  const int32_t* const index = taps.index + o * taps.most;
  const float* const weight = taps.weight + o * taps.most;
  float sum[kChannels] = {};
  for (int32_t t = 0; t < taps.count[o]; ++t) {
    const float* const a = in + int64_t{index[t]} * kChannels;
    for (int c = 0; c < kChannels; ++c) sum[c] += a[c] * weight[t];
  }
  for (int c = 0; c < kChannels; ++c) out[c] = sum[c];
}

// The same by vectors of four, which read and write one number too many when
// there are three channels.
HR_INLINE Four SumFour(const TapRows& taps, int64_t o, const float* in,
                       int channels) {
  const int32_t* const index = taps.index + o * taps.most;
  const float* const weight = taps.weight + o * taps.most;
  Four sum = {};
  for (int32_t t = 0; t < taps.count[o]; ++t) {
    sum += Load(in + int64_t{index[t]} * channels) * weight[t];
  }
  return sum;
}

// Whether a vector for each tap of output `o` ends within the row.
HR_INLINE bool Inside(const TapRows& taps, int64_t o, int64_t inputs) {
  for (int32_t t = 0; t < taps.count[o]; ++t) {
    if (taps.index[o * taps.most + t] + 1 >= inputs) return false;
  }
  return true;
}

// Four outputs side by side, each summed in the same order as alone.
HR_INLINE void FourOutputs(const TapRows& taps, int64_t o, const float* in,
                           float* out) {
  int32_t common = taps.count[o];
  for (int j = 1; j < 4; ++j) {
    common = taps.count[o + j] < common ? taps.count[o + j] : common;
  }
  Four sums[4] = {};
  for (int32_t t = 0; t < common; ++t) {
    for (int j = 0; j < 4; ++j) {
      const int64_t at = (o + j) * taps.most + t;
      sums[j] += Load(in + int64_t{taps.index[at]} * 3) * taps.weight[at];
    }
  }
  for (int j = 0; j < 4; ++j) {
    for (int32_t t = common; t < taps.count[o + j]; ++t) {
      const int64_t at = (o + j) * taps.most + t;
      sums[j] += Load(in + int64_t{taps.index[at]} * 3) * taps.weight[at];
    }
    *reinterpret_cast<FourAnywhere*>(out + 3 * (o + j)) = sums[j];
  }
}

void Three(const TapRows& taps, int64_t outputs, int64_t inputs,
           const float* in, float* out) {
  int64_t o = 0;
  for (; o + 4 < outputs; o += 4) {
    bool inside = taps.count[o] > 8;
    for (int j = 0; inside && j < 4; ++j) {
      inside = Inside(taps, o + j, inputs);
    }
    if (!inside) break;
    FourOutputs(taps, o, in, out);
  }
  for (; o + 1 < outputs && Inside(taps, o, inputs); ++o) {
    *reinterpret_cast<FourAnywhere*>(out + 3 * o) = SumFour(taps, o, in, 3);
  }
  for (; o < outputs; ++o) Sum<3>(taps, o, in, out + 3 * o);
}

HR_INLINE void Lerp(const TapRows& taps, int64_t o, int64_t channels,
                    const float* in, float* out) {
  const int32_t* const index = taps.index + o * taps.most;
  const float* const a = in + index[0] * channels;
  const float* const b = in + index[1] * channels;
  const float w = taps.weight[o * taps.most + 1];
  for (int64_t c = 0; c < channels; ++c) out[c] = a[c] + (b[c] - a[c]) * w;
}

void Lerps(const TapRows& taps, int64_t outputs, int64_t channels,
           const float* in, float* out) {
  // The compiler unrolls what it knows.
  if (channels == 1) {
    for (int64_t o = 0; o < outputs; ++o) Lerp(taps, o, 1, in, out + o);
  } else if (channels == 3) {
    for (int64_t o = 0; o < outputs; ++o) Lerp(taps, o, 3, in, out + 3 * o);
  } else {
    for (int64_t o = 0; o < outputs; ++o) {
      Lerp(taps, o, channels, in, out + channels * o);
    }
  }
}

void AnyChannels(const TapRows& taps, int64_t outputs, int64_t channels,
                 const float* in, float* out) {
  for (int64_t o = 0; o < outputs; ++o, out += channels) {
    const int32_t* const index = taps.index + o * taps.most;
    const float* const weight = taps.weight + o * taps.most;
    for (int64_t c = 0; c < channels; ++c) out[c] = 0;
    for (int32_t t = 0; t < taps.count[o]; ++t) {
      const float* const a = in + index[t] * channels;
      const float w = weight[t];
#pragma GCC ivdep
      for (int64_t c = 0; c < channels; ++c) out[c] += a[c] * w;
    }
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
void ResampleColumns<CpuLevel::HR_LEVEL>(const TapRows& taps, int64_t outputs,
                                         int64_t inputs, int64_t channels,
                                         const float* in, float* out) {
  if (taps.lerps) return Lerps(taps, outputs, channels, in, out);
  if (channels == 1) {
    for (int64_t o = 0; o < outputs; ++o) Sum<1>(taps, o, in, out + o);
  } else if (channels == 3) {
    Three(taps, outputs, inputs, in, out);
  } else if (channels == 4) {
    for (int64_t o = 0; o < outputs; ++o) {
      *reinterpret_cast<FourAnywhere*>(out + 4 * o) = SumFour(taps, o, in, 4);
    }
  } else {
    AnyChannels(taps, outputs, channels, in, out);
  }
}

template <>
void AddRow<CpuLevel::HR_LEVEL>(const float* row, float weight, int64_t width,
                                float* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < width; ++i) out[i] += row[i] * weight;
}

template <>
void MixRows<CpuLevel::HR_LEVEL>(const float* const* rows, const float* weight,
                                 int64_t count, bool lerps, int64_t width,
                                 float* out) {
  if (lerps) {
    const float *a = rows[0], *b = rows[1];
    const float w = weight[1];
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) out[i] = a[i] + (b[i] - a[i]) * w;
    return;
  }
  if (count == 4) {
    const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const float u = weight[0], v = weight[1], w = weight[2], x = weight[3];
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) {
      out[i] = 0.0f + a[i] * u + b[i] * v + c[i] * w + d[i] * x;
    }
    return;
  }
  for (int64_t i = 0; i < width; ++i) out[i] = 0;
  for (int64_t t = 0; t < count; ++t)
    AddRow<CpuLevel::HR_LEVEL>(rows[t], weight[t], width, out);
}

}  // namespace headrace
