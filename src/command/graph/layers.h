// Where the boxes of a picture stand: in layers, arrows downwards, few
// crossings.
#pragma once

#include <utility>
#include <vector>

namespace headrace::command {

struct LayoutBox {
  double width = 0;  // in
  int layer = 0;     // from here on, out
  double x = 0;      // of the middle
};

struct LayoutArrow {
  int from = 0, to = 0;         // boxes, in
  std::vector<double> through;  // x in each layer between, out
};

// Sets layers and places. Boxes of a layer do not meet, `gap` apart at least.
// Arrows in circles may lead upwards. The time is that of some sweeps over
// boxes and arrows. Gives the width of the whole.
double LayOut(double gap, std::vector<LayoutBox>* boxes,
              std::vector<LayoutArrow>* arrows);

}  // namespace headrace::command
