#include "ops/nn/conv/task_split.h"

#include <algorithm>

#include "base/cpu_count.h"

namespace headrace {
namespace {

// Channels of a part are a multiple of this: vectors of the widest registers.
constexpr int64_t kChannels = 64;
// Where an image has fewer pixels, and the filter more channels, bands of rows
// would be uneven, and each would read all of a filter that is larger than the
// image.
constexpr int64_t kFewPixels = 64;
// No task of a forward pass takes longer, about: a call of oneDNN cannot be
// stopped.
constexpr double kLongestNs = 2e7;
// What a task of a gradient costs at least: handing it to oneDNN takes a few
// us.
constexpr double kGradientNs = 2e5;

// Arithmetic, or memory where filters are small.
double Cost(const ConvGeometry& g) {
  const double elements =
      1.0 * g.batch *
      (g.in_pixels() * g.in_channels + g.out_pixels() * g.out_channels);
  // 40 operations a nanosecond, what a core with wide vectors does; 0.2 ns an
  // element for memory.
  return std::max(g.multiplications() / 40, elements * 0.2);
}

// The first spatial dimension that is more than a stand-in.
int BandAxis(const ConvGeometry& g) {
  const Window& w = g.windows[0];
  const bool flat =
      w.in == 1 && w.out == 1 && w.size == 1 && w.before == 0 && w.after == 0;
  return flat ? 1 : 0;
}

int64_t ChannelParts(const ConvGeometry& g, int64_t wanted) {
  // oneDNN cuts no groups; few channels leave vectors unused.
  if (g.groups != 1 || g.out_pixels() >= kFewPixels) return 1;
  return std::clamp<int64_t>(g.out_channels / kChannels, 1, wanted);
}

std::vector<ConvTask> Images(const ConvGeometry& g, int64_t wanted) {
  std::vector<ConvTask> tasks;
  // As many images each, and no more tasks than wanted.
  const int64_t each = (g.batch + wanted - 1) / wanted;
  const int64_t chunks = (g.batch + each - 1) / each;
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t begin = c * g.batch / chunks;
    ConvTask t{g, begin * g.in_pixels() * g.in_channels,
               begin * g.out_pixels() * g.out_channels};
    t.geometry.batch = (c + 1) * g.batch / chunks - begin;
    tasks.push_back(t);
  }
  return tasks;
}

// `cut` bands of every image; none when a band would see padding alone.
std::vector<ConvTask> Bands(const ConvGeometry& g, int64_t cut) {
  std::vector<ConvTask> tasks;
  const int axis = BandAxis(g);
  const Window& w = g.windows[axis];
  const int64_t x_image = g.in_pixels() * g.in_channels;
  const int64_t y_image = g.out_pixels() * g.out_channels;
  const int64_t x_row = x_image / w.in, y_row = y_image / w.out;
  for (int64_t image = 0; image < g.batch; ++image) {
    for (int64_t c = 0; c < cut; ++c) {
      const int64_t first = c * w.out / cut, last = (c + 1) * w.out / cut;
      const int64_t begin = w.begin(first);
      // From the first tap of the first row to the last tap of the last: bands
      // share rows of the input.
      const int64_t end = w.begin(last - 1) + (w.size - 1) * w.dilation + 1;
      const int64_t low = std::max<int64_t>(begin, 0),
                    high = std::min(end, w.in);
      if (low >= high) return {};
      ConvTask t{g, image * x_image + low * x_row,
                 image * y_image + first * y_row};
      t.geometry.batch = 1;
      Window& part = t.geometry.windows[axis];
      part.in = high - low;
      part.out = last - first;
      // Padding belongs to the bands at the edges only.
      part.before = low - begin;
      part.after = end - high;
      tasks.push_back(t);
    }
  }
  return tasks;
}

}  // namespace

// From about 20 us on each processor gets one task: with more of them each
// reads all weights again, and ends in tiles that are not whole.
ConvCuts ForwardCuts(const ConvGeometry& g) {
  const int64_t even = TasksForProcessors();
  // Images are no such loss: several tasks a processor even out what else takes
  // its time.
  const double share = Cost(g) / static_cast<double>(even);
  const int64_t for_evenness =
      std::min<int64_t>({4, g.batch / even, static_cast<int64_t>(share / 2e5)});
  const auto for_stops = static_cast<int64_t>(share / kLongestNs) + 1;
  return {true, true, 1e4, even * std::max(for_evenness, for_stops)};
}

// Images only: bands of the input overlap by the window, and two tasks would
// add to the same pixels.
ConvCuts InputCuts() { return {false, false, kGradientNs, 64}; }

// Every task makes a whole filter, so there are few where filters are large.
ConvCuts FilterCuts(const ConvGeometry& g) {
  return {true, false, kGradientNs,
          std::clamp<int64_t>(g.batch * g.out_pixels() / 64, 1, 8)};
}

ConvTasks SplitConv(const ConvGeometry& g, const ConvCuts& cuts) {
  // Sizes alone decide, never the number of threads: the cut decides the order
  // of sums.
  const int64_t wanted = std::clamp<int64_t>(
      static_cast<int64_t>(Cost(g) / cuts.least_ns), 1, cuts.most);
  // Images first, then rows or channels of one.
  const int64_t parts =
      cuts.channels && g.batch < wanted ? ChannelParts(g, wanted) : 1;
  const int64_t places = (wanted + parts - 1) / parts;
  int64_t bands = 1;
  if (cuts.rows) {
    bands =
        std::min(g.windows[BandAxis(g)].out, (places + g.batch - 1) / g.batch);
  }
  std::vector<ConvTask> of_all;
  if (bands > 1) of_all = Bands(g, bands);
  if (of_all.empty()) of_all = Images(g, places);
  ConvTasks made;
  made.places = static_cast<int64_t>(of_all.size());
  const int64_t blocks = (g.out_channels + kChannels - 1) / kChannels;
  for (int64_t part = 0; part < parts; ++part) {
    // Whole vectors, but for the last part.
    const int64_t begin = part == 0 ? 0 : part * blocks / parts * kChannels;
    const int64_t end = part + 1 == parts
                            ? g.out_channels
                            : (part + 1) * blocks / parts * kChannels;
    for (ConvTask t : of_all) {
      t.channel = begin;
      t.geometry.out_channels = end - begin;
      made.tasks.push_back(t);
    }
  }
  made.ns = Cost(g) / made.count();
  return made;
}

}  // namespace headrace
