// How a convolution is cut into tasks for our own threads. The cut depends on
// the sizes alone, so the bits do not depend on the number of threads.
#pragma once

#include <vector>

#include "ops/nn/conv/convolution.h"

namespace headrace {

// A part of the work: some images, or a band of rows of one, and perhaps only
// some output channels. `geometry` says the part's sizes; the rest is in
// elements.
struct ConvTask {
  ConvGeometry geometry;
  int64_t x_at = 0, y_at = 0;  // where input and output rows begin
  int64_t channel = 0;         // the first output channel
};

// Tasks in the order in which they should run: all places of the first
// channels, then those of the next, so that a part of the filter is read from
// memory once and then from the cache.
struct ConvTasks {
  std::vector<ConvTask> tasks;
  int64_t places = 0;  // tasks that share their channels
  // Nanoseconds that a task takes on one thread, about.
  double ns = 0;
  int64_t count() const { return static_cast<int64_t>(tasks.size()); }
  // Parts that the output channels are cut into.
  int64_t channel_parts() const { return count() / places; }
};

// What may be cut besides the images, and how finely.
struct ConvCuts {
  bool rows = false;  // bands of output rows
  // Output channels, where there are few pixels and many channels.
  bool channels = false;
  double least_ns = 0;  // what a task costs at least, about
  int64_t most = 1;     // tasks at most, about
};

// Of each pass.
ConvCuts ForwardCuts(const ConvGeometry& g);
ConvCuts InputCuts();
ConvCuts FilterCuts(const ConvGeometry& g);

// At least one task. No size of `g` may be 0.
ConvTasks SplitConv(const ConvGeometry& g, const ConvCuts& cuts);

}  // namespace headrace
