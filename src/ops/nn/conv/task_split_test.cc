#include "ops/nn/conv/task_split.h"

#include "gtest/gtest.h"

namespace headrace {
namespace {

ConvGeometry Square(int64_t batch, int64_t size, int64_t in, int64_t out,
                    int64_t kernel, int64_t stride) {
  ConvGeometry g;
  g.batch = batch;
  g.in_channels = in;
  g.out_channels = out;
  g.windows[0].in = g.windows[0].out = 1;
  for (int i : {1, 2}) {
    g.windows[i].in = size;
    g.windows[i].size = kernel;
    g.windows[i].stride = stride;
    EXPECT_TRUE(SolveWindow(Padding::kSame, &g.windows[i]).ok());
  }
  return g;
}

// How often each output element is made.
std::vector<int> Covered(const ConvGeometry& g, const ConvTasks& tasks) {
  std::vector<int> seen(g.batch * g.out_pixels() * g.out_channels);
  for (const ConvTask& t : tasks.tasks) {
    const int64_t rows = t.geometry.batch * t.geometry.out_pixels();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < t.geometry.out_channels; ++c) {
        ++seen.at(t.y_at + t.channel + r * g.out_channels + c);
      }
    }
  }
  return seen;
}

TEST(ConvSplit, MakesEveryElementOnce) {
  for (int64_t batch : {1, 3}) {
    for (int64_t size : {1, 7, 14, 30}) {
      for (int64_t out : {5, 64, 200, 512}) {
        for (int64_t kernel : {1, 3}) {
          const ConvGeometry g = Square(batch, size, 256, out, kernel, 2);
          for (bool channels : {false, true}) {
            const auto seen = Covered(g, SplitConv(g, {true, channels, 32}));
            EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), seen.size());
          }
        }
      }
    }
  }
}

TEST(ConvSplit, CutsLargeFiltersByChannelsAndLargeImagesByRows) {
  const ConvTasks deep =
      SplitConv(Square(1, 7, 512, 512, 3, 1), {true, true, 32});
  EXPECT_EQ(deep.channel_parts(), 8);
  EXPECT_EQ(deep.places, 1);
  const ConvTasks wide =
      SplitConv(Square(1, 56, 64, 64, 3, 1), {true, true, 32});
  EXPECT_EQ(wide.channel_parts(), 1);
  EXPECT_GT(wide.places, 4);
}

}  // namespace
}  // namespace headrace
