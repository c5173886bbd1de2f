#include "ops/nn/conv/onednn_primitives.h"

#include "gtest/gtest.h"
#include "ops/math/products/one_omp_thread.h"

namespace headrace {
namespace {

constexpr size_t kBehind = 4096;  // bytes that nothing may write
constexpr char kUntouched = 0x5a;

ConvGeometry Squares(int64_t side, int64_t window, int64_t stride,
                     int64_t in_channels, int64_t out_channels) {
  ConvGeometry g;
  g.batch = 3;
  g.in_channels = in_channels;
  g.out_channels = out_channels;
  g.windows[0].in = g.windows[0].out = 1;
  for (int i : {1, 2}) {
    Window& w = g.windows[i];
    w.in = side;
    w.size = window;
    w.stride = stride;
    EXPECT_TRUE(SolveWindow(Padding::kValid, &w).ok());
  }
  return g;
}

// Memory for what a pass takes or makes, and what lies behind it.
struct Buffer {
  explicit Buffer(size_t bytes)
      : memory(*Tensor::Allocate(DType::kInt8,
                                 Shape{static_cast<int64_t>(bytes + kBehind)})),
        behind(static_cast<char*>(memory.raw()) + bytes) {
    std::fill_n(static_cast<char*>(memory.raw()), bytes, 0);
    std::fill_n(behind, kBehind, kUntouched);
  }
  bool kept() const {
    return std::all_of(behind, behind + kBehind,
                       [](char c) { return c == kUntouched; });
  }
  Tensor memory;
  char* behind;
};

// Runs one pass on memory of the sizes that are promised; true when nothing
// behind any of it was written.
bool StaysInside(ConvPass pass, const ConvGeometry& g) {
  OneOmpThread one;
  const auto p = ConvPrimitiveFor(pass, g, g.out_channels);
  if (!p) return true;  // another way is taken
  Buffer x(p->x.get_size()), y(p->y.get_size()), filter(p->filter.get_size()),
      scratch(p->scratch_bytes);
  const bool to_x = pass == ConvPass::kInput, to_y = pass == ConvPass::kForward,
             to_filter = pass == ConvPass::kFilter;
  std::unordered_map<int, dnnl::memory> args = {
      {to_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC,
       ConvMemory(p->x, x.memory.raw())},
      {to_filter ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
       ConvMemory(p->filter, filter.memory.raw())},
      {to_y ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
       ConvMemory(p->y, y.memory.raw())}};
  if (p->scratch_bytes > 0) {
    args.emplace(DNNL_ARG_SCRATCHPAD,
                 ConvMemory(p->scratch, scratch.memory.raw()));
  }
  dnnl::stream stream(args.begin()->second.get_engine());
  p->run.execute(stream, args);
  stream.wait();
  return x.kept() && y.kept() && filter.kept() && scratch.kept();
}

// oneDNN's code is made as the program runs: no sanitizer sees what it writes.
TEST(OneDnnPrimitives, StayInTheirMemory) {
  for (const int64_t window : {1, 2, 3}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t side : {8, 9, 16}) {
        for (const int64_t in : {1, 3, 4, 7, 8, 12, 17}) {
          for (const int64_t out : {1, 4, 9, 16}) {
            const ConvGeometry g = Squares(side, window, stride, in, out);
            for (const ConvPass pass :
                 {ConvPass::kForward, ConvPass::kInput, ConvPass::kFilter}) {
              EXPECT_TRUE(StaysInside(pass, g))
                  << "pass " << int(pass) << " window " << window << " stride "
                  << stride << " side " << side << " channels " << in << " to "
                  << out;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
