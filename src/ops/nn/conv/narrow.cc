#include "ops/nn/conv/narrow.h"

#include <algorithm>
#include <atomic>

#include "base/thread_pool.h"
#include "ops/nn/conv/narrow_loops.h"

namespace headrace {

const NarrowLoops& LoopsForNarrow() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return NarrowOf<level>(); });
  return *loops;
}

namespace {

constexpr int64_t kMostChannels = 4;
// Fewer numbers of a window are bound by memory.
constexpr int64_t kLeastTaps = 16;
// Lines of the output that are made together: what they see, with its padding,
// stays in the second cache while all panels of channels go over it.
constexpr int64_t kBand = 7;

class NarrowConv : public PreparedConv {
 public:
  NarrowConv(const ConvGeometry& g, const FinishSteps& steps)
      : channels_(g.in_channels),
        out_(g.out_channels),
        high_(g.windows[1].size),
        wide_(g.windows[2].size),
        steps_(steps),
        loops_(LoopsForNarrow()) {}

  // Panels of as many output channels as a tile has.
  Status Prepare(const float* filter) {
    const int64_t n = Taps() * high_, width = loops_.width;
    HR_ASSIGN_OR_RETURN(filter_,
                        Tensor::Allocate(DType::kFloat, Shape{out_, n}));
    float* to = filter_.data<float>();
    for (int64_t p = 0; p < out_; p += width) {
      for (int64_t t = 0; t < n; ++t, to += width) {
        std::copy_n(filter + t * out_ + p, width, to);
      }
    }
    return OkStatus();
  }

  bool reads_filter() const override { return false; }

  bool Run(const ConvGeometry& g, const float* x, const float*, float* y,
           const ConvPixelsDone* done) const override {
    return Fits(g) && RunLines(g, x, y, {}, done);
  }

  StatusOr<bool> RunFinished(const ConvGeometry& g, const float* x,
                             const float*, float* y,
                             FinishRows rows) const override {
    if (!Fits(g)) return false;
    if (!RunLines(g, x, y, rows, nullptr)) {
      return ResourceExhausted("out of memory in a convolution");
    }
    return true;
  }

 private:
  // Numbers of a window's line.
  int64_t Taps() const { return wide_ * channels_; }
  bool Fits(const ConvGeometry& g) const {
    return g.in_channels == channels_ && g.out_channels == out_ &&
           g.windows[1].size == high_ && g.windows[2].size == wide_ &&
           NarrowTakes(g);
  }

  // Some lines of one image's output.
  struct Band {
    const float* image;
    int64_t first, lines;
    float* y;
  };

  // False where memory ends. Without `y` lines are made where they stay until
  // they were told of.
  bool RunLines(const ConvGeometry& g, const float* x, float* y,
                FinishRows rows, const ConvPixelsDone* done) const {
    const Window &h = g.windows[1], &w = g.windows[2];
    const int64_t line = LineOf(w), high = (kBand - 1) * h.stride + high_;
    const double ns = 2.0 * w.out * high_ * Taps() * out_ / 80;
    std::atomic<bool> failed{false};
    ParallelFor(g.batch * h.out, ns, [&](int64_t begin, int64_t end) {
      const int64_t made = y == nullptr ? kBand * w.out * out_ : 0;
      auto room = Tensor::Allocate(DType::kFloat, Shape{high * line + made});
      if (!room.ok()) {
        failed = true;  // loops give no status: told behind it
        return;
      }
      float* const padded = room->data<float>();
      for (int64_t at = begin; at < end;) {
        const int64_t first = at % h.out;
        const int64_t n = std::min({kBand, end - at, h.out - first});
        const Band band{x + at / h.out * g.in_pixels() * channels_, first, n,
                        y ? y + at * w.out * out_ : padded + high * line};
        Pad(g, band, padded);
        MakeBand(g, band, padded, rows);
        at += n;
        if (done) (*done)((at - n) * w.out, at * w.out, band.y);
      }
    });
    return !failed;
  }

  // Numbers of a line with its padding, up to the last one that is seen.
  int64_t LineOf(const Window& w) const {
    return ((w.out - 1) * w.stride + wide_) * channels_;
  }

  // The lines that the band sees, with zeros around the image.
  void Pad(const ConvGeometry& g, const Band& band, float* to) const {
    const Window &h = g.windows[1], &w = g.windows[2];
    const int64_t line = LineOf(w), in = w.in * channels_;
    const int64_t before = std::min(w.before * channels_, line);
    const int64_t n = std::min(in, line - before);
    const int64_t high = (band.lines - 1) * h.stride + high_;
    for (int64_t i = 0; i < high; ++i, to += line) {
      const int64_t a = h.begin(band.first) + i;
      if (a < 0 || a >= h.in) {
        std::fill_n(to, line, 0.0f);
        continue;
      }
      std::fill_n(to, before, 0.0f);
      std::copy_n(band.image + a * in, n, to + before);
      std::fill(to + before + n, to + line, 0.0f);
    }
  }

  void MakeBand(const ConvGeometry& g, const Band& band, const float* padded,
                FinishRows rows) const {
    const Window &h = g.windows[1], &w = g.windows[2];
    const int64_t width = loops_.width, line = LineOf(w);
    const int64_t groups = (w.out + loops_.pixels - 1) / loops_.pixels;
    absl::InlinedVector<PixelStep, 4> steps;
    NarrowTile t;
    t.pixel = w.stride * channels_;
    t.line = line;
    t.lines = high_;
    t.taps = Taps();
    t.y_pixel = out_;
    for (int64_t c = 0; c < out_; c += width) {
      StepsAt(rows, c, &steps);
      t.steps = steps.data();
      t.count = static_cast<int>(steps.size());
      t.filter = filter_.data<float>() + c * high_ * Taps();
      for (int64_t i = 0; i < band.lines; ++i) {
        for (int64_t p = 0; p < groups; ++p) {
          const int64_t from = p * w.out / groups;
          t.pixels = static_cast<int>((p + 1) * w.out / groups - from);
          t.x = padded + i * h.stride * line + from * t.pixel;
          t.y = band.y + (i * w.out + from) * out_ + c;
          loops_.tile(t);
        }
      }
    }
  }

  // The steps for channels from `c` on.
  void StepsAt(FinishRows rows, int64_t c,
               absl::InlinedVector<PixelStep, 4>* steps) const {
    steps->clear();
    for (size_t s = 0; s < rows.size(); ++s) {
      PixelStep step{};
      step.with = rows[s] ? rows[s] + c : nullptr;
      switch (steps_[s].kind) {
        case FinishStep::kTimesRow:
          step.kind = PixelStep::kTimes;
          break;
        case FinishStep::kPlusRow:
        case FinishStep::kPlusOutput:
          step.kind = PixelStep::kPlus;
          break;
        case FinishStep::kRelu:
          step.kind = PixelStep::kRelu;
          break;
        case FinishStep::kRelu6:
          step.kind = PixelStep::kRelu6;
          break;
      }
      steps->push_back(step);
    }
  }

  const int64_t channels_, out_, high_, wide_;
  const FinishSteps steps_;
  const NarrowLoops& loops_;
  Tensor filter_;  // [panel, line, number, channel of the panel]
};

}  // namespace

bool NarrowTakes(const ConvGeometry& g) {
  const Window& depth = g.windows[0];
  if (depth.in != 1 || depth.out != 1 || depth.size != 1) return false;
  const Window &h = g.windows[1], &w = g.windows[2];
  return g.groups == 1 && g.in_channels <= kMostChannels && h.dilation == 1 &&
         w.dilation == 1 && h.size * w.size * g.in_channels >= kLeastTaps &&
         LoopsForNarrow().width == 32 && g.out_channels % 32 == 0;
}

StatusOr<std::shared_ptr<const PreparedConv>> PrepareNarrow(
    const ConvGeometry& g, const float* filter, const FinishSteps& steps) {
  auto made = std::make_shared<NarrowConv>(g, steps);
  HR_RETURN_IF_ERROR(made->Prepare(filter));
  return std::shared_ptr<const PreparedConv>(std::move(made));
}

}  // namespace headrace
