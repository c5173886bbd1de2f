#include "ops/nn/conv/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "base/cpu_count.h"
#include "base/thread_pool.h"
#include "ops/array/block_copy.h"
#include "ops/math/products/gemm_loops.h"
#include "ops/nn/conv/winograd_loops.h"

namespace headrace {

const WinogradLoops& LoopsForWinograd() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return WinogradOf<level>(); });
  return *loops;
}

namespace {

constexpr int kPoints = 16;  // 4x4 numbers a tile and channel
// Tiles of a block: a few times the rows of the products' register tile, so
// that what a block is transformed into, 16 (C + O) floats a tile, stays in a
// core's caches. Where filters are large each block reads them from further
// away, so blocks are larger.
constexpr int64_t kBlock = 28, kLargeBlock = 56;
constexpr int64_t kLargeChannels = 1024;  // C + O
// Output channels of a part: a multiple of every level's panels.
constexpr int64_t kPart = 32;
// Fewer channels are bound by the transforms; where a filter is large it is
// read for each block, so fewer tiles do not pay.
constexpr int64_t kLeastChannels = 32, kLeastTiles = 28;
// Bytes of a transformed filter that is larger than half of a core's second
// cache.
constexpr int64_t kFetched = 512 << 10;
// Input channels of a task that transforms filters: what both are multiples of.
constexpr int64_t kFilterRows = 16;
// Rows of transformed inputs lie so many floats further apart than they are
// long, as rows 2 KiB apart share lines of the first cache.
constexpr int64_t kRowPad = 16;

bool Enabled() {
  static const bool enabled = [] {
    const char* set = std::getenv("HEADRACE_WINOGRAD");
    return set == nullptr || absl::string_view(set) != "0";
  }();
  return enabled;
}

// How the outputs of one image are cut into tiles of 2x2 pixels.
struct Tiles {
  explicit Tiles(const ConvGeometry& g)
      : rows((g.windows[1].out + 1) / 2), columns((g.windows[2].out + 1) / 2) {}
  int64_t of_image() const { return rows * columns; }
  const int64_t rows, columns;
};

class WinogradConv : public PreparedConv {
 public:
  WinogradConv(const ConvGeometry& g, const FinishSteps& steps)
      : in_(g.in_channels),
        out_(g.out_channels),
        steps_(steps),
        fetches_(kPoints * in_ * out_ * 4 > kFetched),
        gemm_(LoopsForGemm<float>()) {}

  // Panels of as many output channels as a register tile has.
  Status Prepare(const float* filter) {
    HR_ASSIGN_OR_RETURN(
        filter_, Tensor::Allocate(DType::kFloat, Shape{kPoints, in_, out_}));
    float* u = filter_.data<float>();
    const WinogradLoops& loops = LoopsForWinograd();
    const int64_t width = gemm_.width, tap = in_ * out_;
    // Some input channels of a panel, whose columns are whole vectors.
    const int64_t parts = in_ / kFilterRows;
    ParallelFor(out_ / width * parts, kFilterRows * width * 0.5,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin * kFilterRows; i < end * kFilterRows;
                       ++i) {
                    const int64_t panel = i / in_ * width, c = i % in_;
                    loops.filter(filter + c * out_ + panel, tap, width,
                                 u + panel * in_ + c * width, tap);
                  }
                });
    return OkStatus();
  }

  bool reads_filter() const override { return false; }

  bool Run(const ConvGeometry& g, const float* x, const float*, float* y,
           const ConvPixelsDone* done) const override {
    if (!Fits(g)) return false;
    const int64_t pixels = g.batch * g.out_pixels();
    Tensor whole;
    if (y == nullptr) {
      auto room = Tensor::Allocate(DType::kFloat, Shape{pixels, out_});
      if (!room.ok()) return false;
      whole = *std::move(room);
      y = whole.data<float>();
    }
    if (!RunBlocks(g, x, y, {})) return false;
    // Tiles have pixels of two rows: these are whole only now.
    if (done) {
      ParallelFor(pixels, out_ * 0.3, [&](int64_t begin, int64_t end) {
        (*done)(begin, end, y + begin * out_);
      });
    }
    return true;
  }

  StatusOr<bool> RunFinished(
      const ConvGeometry& g, const float* x, const float*, float* y,
      absl::Span<const float* const> rows) const override {
    if (!Fits(g)) return false;
    if (!RunBlocks(g, x, y, rows)) {
      return ResourceExhausted("out of memory in a convolution");
    }
    return true;
  }

 private:
  bool Fits(const ConvGeometry& g) const {
    return g.in_channels == in_ && g.out_channels == out_ && WinogradTakes(g);
  }

  // What a task works in.
  struct Room {
    float *v, *m, *pixels;
    const float* zeros;
  };

  // False where memory ends.
  bool RunBlocks(const ConvGeometry& g, const float* x, float* y,
                 absl::Span<const float* const> rows) const {
    const Tiles tiles(g);
    const int64_t count = g.batch * tiles.of_image();
    const int64_t size = in_ + out_ < kLargeChannels ? kBlock : kLargeBlock;
    const int64_t blocks = (count + size - 1) / size;
    // Few blocks are shared out by output channels too.
    const int64_t units = out_ / kPart;
    const int64_t parts = blocks >= 2 * TasksForProcessors()
                              ? 1
                              : std::min<int64_t>(units, TasksForProcessors());
    const double ns = 2.0 * kPoints * size * in_ * out_ / parts / 80;
    std::atomic<bool> failed{false};
    ParallelFor(blocks * parts, ns, [&](int64_t begin, int64_t end) {
      const int64_t v = kPoints * size * (in_ + kRowPad);
      const int64_t m = kPoints * size * out_;
      auto room =
          Tensor::Allocate(DType::kFloat, Shape{v + m + 4 * out_ + in_});
      if (!room.ok()) {
        failed = true;  // loops give no status: told behind it
        return;
      }
      float* at = room->data<float>();
      const Room r{at, at + v, at + v + m, at + v + m + 4 * out_};
      std::fill_n(at + v + m + 4 * out_, in_, 0.0f);
      int64_t transformed = -1;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / parts, part = i % parts;
        const int64_t first = block * size;
        const int64_t n = std::min(size, count - first);
        if (transformed != block) TransformInput(g, tiles, x, first, n, r);
        transformed = block;
        const int64_t c0 = part * units / parts * kPart;
        const int64_t c1 = (part + 1) * units / parts * kPart;
        Multiply(n, c0, c1, r);
        TransformOutput(g, tiles, first, n, c0, c1, r, rows, y);
      }
    });
    return !failed;
  }

  void TransformInput(const ConvGeometry& g, const Tiles& tiles, const float* x,
                      int64_t first, int64_t n, const Room& r) const {
    const WinogradLoops& loops = LoopsForWinograd();
    const Window &h = g.windows[1], &w = g.windows[2];
    const int64_t row = in_ + kRowPad;
    for (int64_t t = 0; t < n; ++t) {
      const int64_t tile = (first + t) % tiles.of_image();
      const int64_t image = (first + t) / tiles.of_image();
      const int64_t top = tile / tiles.columns * 2 - h.before;
      const int64_t left = tile % tiles.columns * 2 - w.before;
      const float* from = x + image * g.in_pixels() * in_;
      const float* pixels[kPoints];
      for (int i = 0; i < kPoints; ++i) {
        const int64_t a = top + i / 4, b = left + i % 4;
        const bool inside = a >= 0 && a < h.in && b >= 0 && b < w.in;
        pixels[i] = inside ? from + (a * w.in + b) * in_ : r.zeros;
      }
      loops.input(pixels, in_, r.v + t * row, n * row);
    }
  }

  // The filter for a point and the panel of output channels from c on.
  const float* PanelAt(int k, int64_t c) const {
    return filter_.data<float>() + (k * out_ + c) * in_;
  }

  // The products of all 16 points for output channels [c0, c1).
  void Multiply(int64_t n, int64_t c0, int64_t c1, const Room& r) const {
    const int width = gemm_.width;
    const int64_t row = in_ + kRowPad, m_row = c1 - c0;
    for (int k = 0; k < kPoints; ++k) {
      for (int64_t c = c0; c < c1; c += width) {
        const float* u = PanelAt(k, c);
        // A filter that does not stay in the cache is fetched a panel ahead, a
        // line for each step of a tile.
        const float* next = c + width < c1
                                ? PanelAt(k, c + width)
                                : PanelAt(std::min(k + 1, kPoints - 1), c0);
        for (int64_t t = 0; t < n; t += gemm_.max_rows, next += in_ * 16) {
          const int some =
              static_cast<int>(std::min<int64_t>(gemm_.max_rows, n - t));
          const float* v = r.v + (k * n + t) * row;
          float* m = r.m + (k * n + t) * m_row + c - c0;
          if (fetches_ && t < 2 * gemm_.max_rows) {
            gemm_.tile_and_fetch(v, row, 1, u, width, m, m_row, some, width,
                                 in_, false, next);
          } else {
            gemm_.tile(v, row, 1, u, width, m, m_row, some, width, in_, false);
          }
        }
      }
    }
  }

  void TransformOutput(const ConvGeometry& g, const Tiles& tiles, int64_t first,
                       int64_t n, int64_t c0, int64_t c1, const Room& r,
                       absl::Span<const float* const> rows, float* y) const {
    const WinogradLoops& loops = LoopsForWinograd();
    const Window &h = g.windows[1], &w = g.windows[2];
    const int64_t channels = c1 - c0;
    float* made[4];
    for (int i = 0; i < 4; ++i) made[i] = r.pixels + i * out_;
    absl::InlinedVector<PixelStep, 4> steps;
    for (int64_t t = 0; t < n; ++t) {
      const int64_t tile = (first + t) % tiles.of_image();
      const int64_t image = (first + t) / tiles.of_image();
      const int64_t top = tile / tiles.columns * 2;
      const int64_t left = tile % tiles.columns * 2;
      loops.output(r.m + t * channels, n * channels, channels, made);
      for (int i = 0; i < 4; ++i) {
        const int64_t a = top + i / 2, b = left + i % 2;
        if (a >= h.out || b >= w.out) continue;
        float* to = y + ((image * h.out + a) * w.out + b) * out_ + c0;
        StepsAt(rows, c0, to, &steps);
        loops.finish(steps.data(), static_cast<int>(steps.size()), channels,
                     made[i]);
        std::copy_n(made[i], channels, to);
      }
    }
  }

  // The steps of a pixel whose channels begin with c0 and lie at `to`.
  void StepsAt(absl::Span<const float* const> rows, int64_t c0, const float* to,
               absl::InlinedVector<PixelStep, 4>* steps) const {
    steps->clear();
    for (size_t s = 0; s < rows.size(); ++s) {
      switch (steps_[s].kind) {
        case FinishStep::kTimesRow:
          steps->push_back({PixelStep::kTimes, rows[s] + c0});
          break;
        case FinishStep::kPlusRow:
          steps->push_back({PixelStep::kPlus, rows[s] + c0});
          break;
        case FinishStep::kPlusOutput:
          steps->push_back({PixelStep::kPlus, to});
          break;
        case FinishStep::kRelu:
          steps->push_back({PixelStep::kRelu});
          break;
        case FinishStep::kRelu6:
          steps->push_back({PixelStep::kRelu6});
          break;
      }
    }
  }

  const int64_t in_, out_;
  const FinishSteps steps_;
  const bool fetches_;
  const GemmLoops<float>& gemm_;
  Tensor filter_;  // [point, panel, input channel, channel of the panel]
};

}  // namespace

bool WinogradTakes(const ConvGeometry& g) {
  const Window& depth = g.windows[0];
  if (depth.in != 1 || depth.out != 1 || depth.size != 1) return false;
  for (int i : {1, 2}) {
    const Window& w = g.windows[i];
    if (w.size != 3 || w.stride != 1 || w.dilation != 1) return false;
  }
  return g.groups == 1 && g.in_channels % 16 == 0 && g.out_channels % 32 == 0 &&
         std::min(g.in_channels, g.out_channels) >= kLeastChannels &&
         g.batch * Tiles(g).of_image() >= kLeastTiles && Enabled();
}

StatusOr<std::shared_ptr<const PreparedConv>> PrepareWinograd(
    const ConvGeometry& g, const float* filter, const FinishSteps& steps) {
  auto made = std::make_shared<WinogradConv>(g, steps);
  HR_RETURN_IF_ERROR(made->Prepare(filter));
  return std::shared_ptr<const PreparedConv>(std::move(made));
}

ConvGeometry GradientAsConv(const ConvGeometry& g) {
  ConvGeometry t = g;
  std::swap(t.in_channels, t.out_channels);
  for (Window& w : t.windows) {
    std::swap(w.in, w.out);
    w.before = w.size - 1 - w.before;
    w.after = w.size - 1 - w.after;
  }
  return t;
}

Status WinogradBackwardInput(const ConvGeometry& g, const float* filter,
                             const float* dy, float* dx) {
  const int64_t in = g.in_channels, out = g.out_channels, taps = 9;
  HR_ASSIGN_OR_RETURN(Tensor turned,
                      Tensor::Allocate(DType::kFloat, Shape{taps, out, in}));
  // From the last tap to the first, each transposed.
  CopyBlock(DType::kFloat, filter + (taps - 1) * in * out, turned.raw(),
            {{taps, -in * out, in * out}, {out, 1, in}, {in, out, 1}});
  const ConvGeometry as = GradientAsConv(g);
  HR_ASSIGN_OR_RETURN(const auto conv,
                      PrepareWinograd(as, turned.data<float>(), {}));
  if (!conv->Run(as, dy, turned.data<float>(), dx, nullptr)) {
    return ResourceExhausted("out of memory in a convolution");
  }
  return OkStatus();
}

}  // namespace headrace
