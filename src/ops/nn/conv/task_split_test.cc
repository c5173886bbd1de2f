#include "ops/nn/conv/task_split.h"

#include <algorithm>

#include "base/cpu_count.h"
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
            const auto seen =
                Covered(g, SplitConv(g, {true, channels, 1e4, 32}));
            EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), seen.size());
          }
        }
      }
    }
  }
}

TEST(ConvSplit, GivesEachProcessorOneTask) {
  const int64_t processors = TasksForProcessors();
  const auto split = [](const ConvGeometry& g) {
    return SplitConv(g, ForwardCuts(g));
  };
  // By channels where there are few pixels, by rows of an image, by images.
  const ConvTasks deep = split(Square(1, 7, 512, 512, 3, 1));
  EXPECT_EQ(deep.channel_parts(), std::min<int64_t>(processors, 512 / 64));
  const ConvTasks wide = split(Square(1, 56, 64, 64, 3, 1));
  EXPECT_EQ(wide.channel_parts(), 1);
  EXPECT_EQ(wide.places, std::min<int64_t>(processors, 56));
  EXPECT_EQ(split(Square(64, 8, 64, 64, 1, 1)).count(),
            std::min<int64_t>(processors, 64));
  const int64_t images = split(Square(64, 56, 64, 64, 3, 1)).count();
  EXPECT_GE(images, std::min<int64_t>(processors, 64));
  EXPECT_LE(images, std::max<int64_t>(4 * processors, 16));
  // What takes some microseconds is not cut, what takes long is, more finely.
  EXPECT_EQ(split(Square(1, 8, 8, 8, 1, 1)).count(), 1);
  const ConvTasks huge = split(Square(64, 224, 64, 64, 3, 1));
  EXPECT_GT(huge.count(), 4);
  EXPECT_LT(huge.ns, 4e7);
}

}  // namespace
}  // namespace headrace
