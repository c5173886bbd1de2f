#include "ops/nn/conv/narrow.h"

#include "base/thread_pool.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// Whole numbers, whose sums are exact.
template <typename T>
std::vector<T> Whole(int64_t n, int seed) {
  std::vector<T> v(n);
  for (int64_t i = 0; i < n; ++i)
    v[i] = static_cast<T>((i * seed + 5) % 17 - 8);
  return v;
}

ConvGeometry Images(int64_t channels, int64_t window, int64_t stride,
                    Padding padding) {
  ConvGeometry g;
  g.batch = 2;
  g.in_channels = channels;
  g.out_channels = 64;
  g.windows[0].in = g.windows[0].out = 1;
  for (int i : {1, 2}) {
    Window& w = g.windows[i];
    w.in = 37 + 9 * i;
    w.size = window + (i == 2);  // not square
    w.stride = stride;
    w.before = 4;
    EXPECT_TRUE(SolveWindow(padding, &w).ok());
  }
  return g;
}

// What loops of double make of the same numbers.
std::vector<float> Wanted(const ConvGeometry& g) {
  const auto x = Whole<double>(g.batch * g.in_pixels() * g.in_channels, 7);
  const auto filter = Whole<double>(g.filter_elements(), 3);
  std::vector<double> y(g.batch * g.out_pixels() * g.out_channels);
  EXPECT_TRUE(
      ConvForward(DType::kDouble, g, x.data(), filter.data(), y.data()).ok());
  return {y.begin(), y.end()};
}

TEST(Narrow, MakesTheSums) {
  for (const int64_t channels : {1, 3, 4}) {
    for (const int64_t window : {3, 7}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const Padding padding :
             {Padding::kSame, Padding::kValid, Padding::kExplicit}) {
          const ConvGeometry g = Images(channels, window, stride, padding);
          if (!NarrowTakes(g)) continue;  // few taps, or another processor
          const auto x = Whole<float>(g.batch * g.in_pixels() * channels, 7);
          const auto filter = Whole<float>(g.filter_elements(), 3);
          const std::vector<float> wanted = Wanted(g);
          for (int threads : {1, 2, 4}) {
            ScopedThreadLimit limit(threads);
            std::vector<float> y(wanted.size());
            ASSERT_TRUE(
                ConvForward(DType::kFloat, g, x.data(), filter.data(), y.data())
                    .ok());
            EXPECT_EQ(y, wanted) << channels << window << stride << threads;
          }
        }
      }
    }
  }
}

TEST(Narrow, HandsLinesOnAndDoesTheStepsBehindIt) {
  const ConvGeometry g = Images(3, 7, 2, Padding::kSame);
  if (!NarrowTakes(g)) GTEST_SKIP() << "not on this processor";
  const auto x = Whole<float>(g.batch * g.in_pixels() * 3, 7);
  const auto filter = Whole<float>(g.filter_elements(), 3);
  std::vector<float> wanted = Wanted(g), y(wanted.size());
  const auto plain = PrepareNarrow(g, filter.data(), {});
  ASSERT_TRUE(plain.ok());
  auto take = [&](int64_t begin, int64_t end, const float* pixels) {
    std::copy_n(pixels, (end - begin) * 64, y.data() + begin * 64);
  };
  const ConvPixelsDone done(take);
  ASSERT_TRUE((*plain)->Run(g, x.data(), filter.data(), nullptr, &done));
  EXPECT_EQ(y, wanted);

  const auto scale = Whole<float>(64, 5), shift = Whole<float>(64, 11);
  for (size_t i = 0; i < wanted.size(); ++i) {
    y[i] = static_cast<float>(i % 7) - 3;
    const float v = wanted[i] * scale[i % 64] + shift[i % 64] + y[i];
    wanted[i] = std::max(std::min(v, 6.0f), 0.0f);
  }
  const FinishSteps steps{{FinishStep::kTimesRow},
                          {FinishStep::kPlusRow},
                          {FinishStep::kPlusOutput},
                          {FinishStep::kRelu6}};
  const auto finished = PrepareNarrow(g, filter.data(), steps);
  ASSERT_TRUE(finished.ok());
  const auto made =
      (*finished)->RunFinished(g, x.data(), filter.data(), y.data(),
                               {scale.data(), shift.data(), nullptr, nullptr});
  ASSERT_TRUE(made.ok() && *made);
  EXPECT_EQ(y, wanted);
}

TEST(Narrow, LeavesOtherConvolutionsAlone) {
  ConvGeometry g = Images(3, 7, 2, Padding::kSame);
  g.out_channels = 48;
  EXPECT_FALSE(NarrowTakes(g));
  g = Images(8, 7, 2, Padding::kSame);
  EXPECT_FALSE(NarrowTakes(g));
  g = Images(3, 7, 1, Padding::kSame);
  g.windows[2].dilation = 2;
  EXPECT_FALSE(NarrowTakes(g));
}

}  // namespace
}  // namespace headrace
