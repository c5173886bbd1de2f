#include "command/graph/layers.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace headrace::command {
namespace {

TEST(Layers, ArrowsLeadDownwardsAndBoxesDoNotMeet) {
  std::vector<LayoutBox> boxes(60, {40});
  std::vector<LayoutArrow> arrows;
  for (int i = 1; i < 60; ++i) {
    arrows.push_back({i / 3, i});
    if (i > 20) arrows.push_back({i % 7, i});
  }
  const double width = LayOut(10, &boxes, &arrows);
  for (const LayoutArrow& a : arrows) {
    const int length = boxes[a.to].layer - boxes[a.from].layer;
    EXPECT_GT(length, 0);
    EXPECT_EQ(a.through.size(), static_cast<size_t>(length - 1));
  }
  for (int i = 0; i < 60; ++i) {
    EXPECT_GE(boxes[i].x, 20 - 1e-6);
    EXPECT_LE(boxes[i].x, width - 20 + 1e-6);
    for (int j = 0; j < i; ++j) {
      if (boxes[i].layer != boxes[j].layer) continue;
      EXPECT_GE(std::abs(boxes[i].x - boxes[j].x), 50 - 1e-6);
    }
  }
}

TEST(Layers, CirclesAndBoxesAlone) {
  std::vector<LayoutBox> boxes(4, {40});
  std::vector<LayoutArrow> arrows = {{0, 1}, {1, 2}, {2, 0}, {1, 1}};
  LayOut(10, &boxes, &arrows);
  EXPECT_EQ(boxes[2].layer, 2);
  EXPECT_EQ(boxes[3].layer, 0);
  std::vector<LayoutBox> none;
  arrows.clear();
  EXPECT_EQ(LayOut(10, &none, &arrows), 0);
}

}  // namespace
}  // namespace headrace::command
