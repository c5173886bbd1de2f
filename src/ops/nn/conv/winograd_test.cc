#include "ops/nn/conv/winograd.h"

#include <cmath>
#include <random>

#include "base/thread_pool.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// One result of so many is compared, as direct sums are slow under sanitizers:
// no divisor of the channels, so that all of them come.
constexpr size_t kEvery = 11;

ConvGeometry Square(int64_t batch, int64_t size, int64_t in, int64_t out,
                    Padding padding) {
  ConvGeometry g;
  g.batch = batch;
  g.in_channels = in;
  g.out_channels = out;
  g.windows[0].in = g.windows[0].out = 1;
  for (int i : {1, 2}) {
    g.windows[i].in = size + (i == 2);  // not square
    g.windows[i].size = 3;
    EXPECT_TRUE(SolveWindow(padding, &g.windows[i]).ok());
  }
  return g;
}

struct Data {
  std::vector<float> x, filter, y, direct;
  std::vector<double> exact;
};

// Numbers of mean `mean` whose scales differ by channel as 1 to `scale`; the
// exact convolution, and a direct sum of floats in one chain.
Data Make(const ConvGeometry& g, float mean, float scale) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal(mean, 1);
  Data d;
  d.x.resize(g.batch * g.in_pixels() * g.in_channels);
  for (size_t i = 0; i < d.x.size(); ++i) {
    const float channel = static_cast<float>(i % g.in_channels);
    d.x[i] = normal(engine) *
             std::pow(scale, channel / static_cast<float>(g.in_channels));
  }
  d.filter.resize(g.filter_elements());
  for (float& f : d.filter) f = normal(engine) - mean;
  d.y.resize(g.batch * g.out_pixels() * g.out_channels);
  d.exact.resize(d.y.size());
  d.direct.resize(d.y.size());
  const Window &h = g.windows[1], &w = g.windows[2];
  const float *x = d.x.data(), *filter = d.filter.data();
  for (size_t at = 0; at < d.y.size(); at += kEvery) {
    const int64_t o = at % g.out_channels, p = at / g.out_channels;
    const int64_t image = p / g.out_pixels();
    const int64_t i = p % g.out_pixels() / w.out, j = p % w.out;
    double sum = 0;
    float chain = 0;
    for (int64_t t = 0; t < 9; ++t) {
      const int64_t a = i - h.before + t / 3, b = j - w.before + t % 3;
      if (a < 0 || a >= h.in || b < 0 || b >= w.in) continue;
      for (int64_t c = 0; c < g.in_channels; ++c) {
        const float v = x[((image * h.in + a) * w.in + b) * g.in_channels + c];
        const float f = filter[(t * g.in_channels + c) * g.out_channels + o];
        sum += static_cast<double>(v) * f;
        chain = std::fma(v, f, chain);
      }
    }
    d.exact[at] = sum;
    d.direct[at] = chain;
  }
  return d;
}

double Worst(const std::vector<float>& y, const std::vector<double>& exact) {
  double worst = 0;
  for (size_t i = 0; i < y.size(); i += kEvery) {
    worst = std::max(worst, std::abs(y[i] - exact[i]));
  }
  return worst;
}

void Convolve(const ConvGeometry& g, Data* d, const FinishSteps& steps = {},
              absl::Span<const float* const> rows = {}) {
  const auto conv = PrepareWinograd(g, d->filter.data(), steps);
  ASSERT_TRUE(conv.ok());
  if (steps.empty()) {
    ASSERT_TRUE(
        (*conv)->Run(g, d->x.data(), d->filter.data(), d->y.data(), nullptr));
    return;
  }
  const auto made =
      (*conv)->RunFinished(g, d->x.data(), d->filter.data(), d->y.data(), rows);
  ASSERT_TRUE(made.ok() && *made);
}

TEST(Winograd, IsAsExactAsADirectSum) {
  for (const Padding padding : {Padding::kSame, Padding::kValid}) {
    for (const int64_t size : {11, 14}) {
      for (const int64_t in : {32, 48, 256}) {
        for (const float mean : {0.0f, 30.0f}) {
          for (const float scale : {1.0f, 1000.0f}) {
            const ConvGeometry g = Square(2, size, in, 64, padding);
            ASSERT_TRUE(WinogradTakes(g));
            Data d = Make(g, mean, scale);
            Convolve(g, &d);
            EXPECT_LE(Worst(d.y, d.exact), 1.2 * Worst(d.direct, d.exact))
                << size << " " << in << " " << mean << " " << scale;
          }
        }
      }
    }
  }
}

TEST(Winograd, HasTheSameBitsOnAnyNumberOfThreadsAndInAnyBatch) {
  const ConvGeometry g = Square(3, 13, 64, 96, Padding::kSame);
  Data d = Make(g, 0, 1);
  Convolve(g, &d);
  const std::vector<float> wanted = d.y;
  {
    ScopedThreadLimit one(1);
    Convolve(g, &d);
  }
  EXPECT_EQ(d.y, wanted);
  ConvGeometry first = g;
  first.batch = 1;
  std::fill(d.y.begin(), d.y.end(), 0.0f);
  Convolve(first, &d);
  const size_t n = wanted.size() / 3;
  EXPECT_EQ(std::vector<float>(d.y.begin(), d.y.begin() + n),
            std::vector<float>(wanted.begin(), wanted.begin() + n));
}

TEST(Winograd, DoesTheStepsBehindIt) {
  const ConvGeometry g = Square(1, 12, 32, 64, Padding::kSame);
  Data d = Make(g, 0, 1);
  Convolve(g, &d);
  std::vector<float> wanted = d.y, scale(64), shift(64);
  for (int i = 0; i < 64; ++i) scale[i] = 0.1f * i - 3, shift[i] = 1.5f - i;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const float residue = static_cast<float>(i % 7) - 3;
    wanted[i] = wanted[i] * scale[i % 64];
    wanted[i] = wanted[i] + shift[i % 64];
    wanted[i] = std::max(wanted[i] + residue, 0.0f);
    d.y[i] = residue;
  }
  Convolve(g, &d,
           {{FinishStep::kTimesRow, 0},
            {FinishStep::kPlusRow, 1},
            {FinishStep::kPlusOutput, 2},
            {FinishStep::kRelu}},
           {scale.data(), shift.data(), nullptr, nullptr});
  EXPECT_EQ(d.y, wanted);
}

TEST(Winograd, MakesTheInputsGradient) {
  // Paddings, the last more than a window has before and none behind.
  for (const int64_t before : {0, 1, 3}) {
    ConvGeometry g = Square(2, 13, 64, 48, Padding::kSame);
    for (int i : {1, 2}) {
      g.windows[i].before = before;
      g.windows[i].after = before % 3;
      ASSERT_TRUE(SolveWindow(Padding::kExplicit, &g.windows[i]).ok());
    }
    ASSERT_TRUE(WinogradTakes(GradientAsConv(g)));
    const Data d = Make(g, 0, 100);
    std::vector<float> dy(g.batch * g.out_pixels() * g.out_channels);
    for (size_t i = 0; i < dy.size(); ++i) {
      dy[i] = std::sin(static_cast<float>(i)) * static_cast<float>(i % 97);
    }
    // By loops of double.
    const std::vector<double> wide(dy.begin(), dy.end()),
        filter(d.filter.begin(), d.filter.end());
    std::vector<double> exact(d.x.size());
    ASSERT_TRUE(ConvBackwardInput(DType::kDouble, g, filter.data(), wide.data(),
                                  exact.data())
                    .ok());
    double most = 0;
    for (double v : exact) most = std::max(most, std::abs(v));
    std::vector<float> dx(exact.size());
    ASSERT_TRUE(
        WinogradBackwardInput(g, d.filter.data(), dy.data(), dx.data()).ok());
    EXPECT_LE(Worst(dx, exact), 1e-6 * most);
    // As the op makes it, on one thread.
    std::vector<float> again(dx.size());
    ScopedThreadLimit one(1);
    ASSERT_TRUE(ConvBackwardInput(DType::kFloat, g, d.filter.data(), dy.data(),
                                  again.data())
                    .ok());
    EXPECT_EQ(again, dx);
  }
}

TEST(Winograd, LeavesOtherConvolutionsAlone) {
  ConvGeometry g = Square(1, 14, 64, 64, Padding::kSame);
  EXPECT_TRUE(WinogradTakes(g));
  g.windows[1].stride = 2;
  EXPECT_FALSE(WinogradTakes(g));
  g = Square(1, 14, 60, 64, Padding::kSame);
  EXPECT_FALSE(WinogradTakes(g));
  g = Square(1, 7, 512, 512, Padding::kSame);  // 16 tiles
  EXPECT_FALSE(WinogradTakes(g));
}

}  // namespace
}  // namespace headrace
