#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "eager/eager_emitter.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

struct Sizes {
  int64_t steps, batch, inputs, cells;
  bool peephole = false, v2 = false;
};

std::string Name(const testing::TestParamInfo<Sizes>& info) {
  const Sizes& s = info.param;
  return std::to_string(s.steps) + "x" + std::to_string(s.batch) + "x" +
         std::to_string(s.inputs) + "x" + std::to_string(s.cells) +
         (s.peephole ? "Peephole" : "") + (s.v2 ? "V2" : "");
}

Tensor Waves(const Shape& shape, int seed, float scale) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = scale * std::sin(static_cast<float>(i) * 0.7f +
                                          static_cast<float>(seed));
  }
  return t;
}

// x, cs_prev, h_prev, w, wci, wcf, wco, b.
std::vector<Tensor> Given(const Sizes& s) {
  const int64_t c = s.cells, rows = s.inputs + c;
  const float w = 1 / std::sqrt(static_cast<float>(rows));
  return {Waves({s.steps, s.batch, s.inputs}, 1, 1),
          Waves({s.batch, c}, 2, 1),
          Waves({s.batch, c}, 3, 1),
          Waves({rows, 4 * c}, 4, w),
          Waves({c}, 5, 0.5f),
          Waves({c}, 6, 0.5f),
          Waves({c}, 7, 0.5f),
          Waves({4 * c}, 8, 0.3f)};
}

AttrMap Attrs(const Sizes& s, bool forward) {
  AttrMap attrs{{"use_peephole", s.peephole}};
  if (forward) attrs.Set("cell_clip", 1.5f);
  return attrs;
}

std::vector<Tensor> Forward(const Sizes& s, const std::vector<Tensor>& given) {
  std::vector<Tensor> in = {Tensor::Scalar<int64_t>(s.steps)};
  in.insert(in.end(), given.begin(), given.end());
  auto made = RunOp(s.v2 ? "BlockLSTMV2" : "BlockLSTM", in, Attrs(s, true));
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? std::vector<Tensor>(made->begin(), made->end())
                   : std::vector<Tensor>(7);
}

std::vector<Tensor> Backward(const Sizes& s, const std::vector<Tensor>& given,
                             const std::vector<Tensor>& made) {
  std::vector<Tensor> in = {Tensor::Scalar<int64_t>(s.steps)};
  in.insert(in.end(), given.begin(), given.end());
  in.insert(in.end(), made.begin(), made.end());
  const Shape states{s.steps, s.batch, s.cells};
  in.push_back(Waves(states, 9, 1));
  in.push_back(Waves(states, 10, 1));
  auto grads =
      RunOp(s.v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad", in, Attrs(s, false));
  EXPECT_TRUE(grads.ok()) << grads.status();
  return grads.ok() ? std::vector<Tensor>(grads->begin(), grads->end())
                    : std::vector<Tensor>(8);
}

using Doubles = std::vector<double>;
std::vector<Doubles> Wide(const std::vector<Tensor>& given) {
  std::vector<Doubles> wide;
  for (const Tensor& t : given) {
    wide.emplace_back(t.data<float>(), t.data<float>() + t.num_elements());
  }
  return wide;
}

double Logistic(double v) { return 1 / (1 + std::exp(-v)); }

// cs and h of all steps, by the definition.
std::pair<Doubles, Doubles> Plain(const Sizes& s,
                                  const std::vector<Doubles>& in) {
  const int64_t c = s.cells, state = s.batch * c;
  const int64_t fresh = s.v2 ? 2 : 1, forget = s.v2 ? 1 : 2;
  Doubles all_cs, all_h, cs = in[1], h = in[2];
  for (int64_t t = 0; t < s.steps; ++t) {
    Doubles new_cs(state), new_h(state);
    for (int64_t n = 0; n < s.batch; ++n) {
      Doubles sums = in[7];
      for (int64_t r = 0; r < s.inputs + c; ++r) {
        const double v = r < s.inputs ? in[0][(t * s.batch + n) * s.inputs + r]
                                      : h[n * c + r - s.inputs];
        for (int64_t k = 0; k < 4 * c; ++k) sums[k] += v * in[3][r * 4 * c + k];
      }
      for (int64_t k = 0; k < c; ++k) {
        const double before = cs[n * c + k];
        auto peep = [&](int i, double v) { return s.peephole * in[i][k] * v; };
        const double i = Logistic(sums[k] + peep(4, before));
        const double f =
            Logistic(sums[forget * c + k] + (s.v2 ? 0 : 1) + peep(5, before));
        double now = std::tanh(sums[fresh * c + k]) * i + before * f;
        now = std::min(std::max(now, -1.5), 1.5);
        const double o = Logistic(sums[3 * c + k] + peep(6, now));
        new_cs[n * c + k] = now;
        new_h[n * c + k] = o * std::tanh(now);
      }
    }
    cs = new_cs;
    h = new_h;
    all_cs.insert(all_cs.end(), cs.begin(), cs.end());
    all_h.insert(all_h.end(), h.begin(), h.end());
  }
  return {all_cs, all_h};
}

class BlockLstm : public testing::TestWithParam<Sizes> {};
INSTANTIATE_TEST_SUITE_P(
    Sizes, BlockLstm,
    testing::Values(Sizes{1, 2, 3, 4}, Sizes{3, 5, 7, 33}, Sizes{5, 1, 4, 100},
                    Sizes{6, 33, 20, 70, true}, Sizes{9, 70, 3, 48},
                    Sizes{4, 130, 9, 64, true, true}, Sizes{4, 3, 0, 40},
                    Sizes{8, 32, 64, 128, false, true}),
    Name);

TEST_P(BlockLstm, IsWhatTheDefinitionSays) {
  const std::vector<Tensor> given = Given(GetParam());
  const std::vector<Tensor> made = Forward(GetParam(), given);
  const auto [cs, h] = Plain(GetParam(), Wide(given));
  for (size_t k = 0; k < h.size(); ++k) {
    ASSERT_NEAR(made[1].data<float>()[k], cs[k], 2e-5) << k;
    ASSERT_NEAR(made[6].data<float>()[k], h[k], 2e-5) << k;
  }
}

// Along one direction of each input.
TEST_P(BlockLstm, GradientsAreSlopes) {
  const Sizes& s = GetParam();
  std::vector<Tensor> given = Given(s);
  given[0] = Waves(given[0].shape(), 1, 0.1f);  // nothing is clipped
  given[1] = Waves(given[1].shape(), 2, 0.1f);
  const std::vector<Tensor> made = Forward(s, given);
  const std::vector<Tensor> grads = Backward(s, given, made);
  const std::vector<Doubles> in = Wide(given);
  const Doubles cs_grad = Wide({Waves(made[1].shape(), 9, 1)})[0];
  const Doubles h_grad = Wide({Waves(made[6].shape(), 10, 1)})[0];
  for (size_t i = 0; i < in.size(); ++i) {
    if (!s.peephole && i >= 4 && i < 7) continue;
    double expected = 0, slope = 0, size = 0;
    const auto way = [](size_t k) { return std::cos(3.0 * k); };
    for (size_t k = 0; k < in[i].size(); ++k) {
      expected += grads[i].data<float>()[k] * way(k);
      size += std::abs(grads[i].data<float>()[k]);
    }
    for (int sign : {1, -1}) {
      std::vector<Doubles> moved = in;
      for (size_t k = 0; k < in[i].size(); ++k)
        moved[i][k] += sign * 1e-6 * way(k);
      const auto [cs, h] = Plain(s, moved);
      for (size_t k = 0; k < h.size(); ++k) {
        slope += sign * (cs[k] * cs_grad[k] + h[k] * h_grad[k]) / 2e-6;
      }
    }
    EXPECT_NEAR(expected, slope, 1e-4 * size + 1e-4) << i;
  }
}

TEST_P(BlockLstm, SameBitsForAnyThreads) {
  const std::vector<Tensor> given = Given(GetParam());
  SetNumThreads(1);
  const std::vector<Tensor> made = Forward(GetParam(), given);
  const std::vector<Tensor> grads = Backward(GetParam(), given, made);
  for (int threads : {2, 4, 7}) {
    SetNumThreads(threads);
    std::vector<Tensor> again = Forward(GetParam(), given);
    for (size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(std::memcmp(again[i].raw(), made[i].raw(), made[i].bytes()), 0);
    }
    again = Backward(GetParam(), given, made);
    for (size_t i = 0; i < grads.size(); ++i) {
      EXPECT_EQ(std::memcmp(again[i].raw(), grads[i].raw(), grads[i].bytes()),
                0);
    }
  }
  SetNumThreads(0);
}

TEST(BlockLstm, NansStayWithTheirImage) {
  const Sizes s{5, 20, 8, 40};
  std::vector<Tensor> given = Given(s);
  given[1].data<float>()[7 * s.cells + 3] = std::nanf("");
  const Tensor h = Forward(s, given)[6];
  for (int64_t i = 0; i < h.num_elements(); ++i) {
    const int64_t step = i / (s.batch * s.cells), image = i / s.cells % s.batch;
    const bool may = image == 7 && (step > 0 || i % s.cells == 3);
    ASSERT_EQ(std::isnan(h.data<float>()[i]), may) << i;
  }
}

}  // namespace
}  // namespace headrace
