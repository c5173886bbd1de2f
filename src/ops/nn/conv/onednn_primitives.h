// oneDNN's convolutions of float with channels last, kept by their sizes.
#pragma once

#include <memory>
#include <unordered_map>

#include "oneapi/dnnl/dnnl.hpp"
#include "ops/nn/conv/convolution.h"

namespace headrace {

enum class ConvPass : int64_t { kForward, kInput, kFilter };

// A primitive with the layouts that it wants. Immutable, thread-safe.
struct ConvPrimitive {
  using Desc = dnnl::memory::desc;
  dnnl::primitive run, pack;  // pack: the filter to or from its own layout
  Desc x, filter, y, plain_filter, scratch;
  Desc row, bias;  // of a step: one number an output channel
  bool packs = false;
  size_t scratch_bytes = 0;  // what a run may write there
};

// Whether the first step is added as a bias, which takes less time than a step.
bool StepsBias(const FinishSteps& steps);

// The primitive, from those kept or made anew; null when oneDNN has none, or
// has the steps behind a forward pass only in plain loops. `filter_channels`:
// output channels of the plain filter that `g`'s output channels are a part of.
// Call it, and what follows, under OneOmpThread.
std::shared_ptr<const ConvPrimitive> ConvPrimitiveFor(
    ConvPass pass, const ConvGeometry& g, int64_t filter_channels,
    const FinishSteps& steps = {});

// Throws when oneDNN fails or memory ends. The scratchpad is added.
void ExecuteConv(const ConvPrimitive& p,
                 std::unordered_map<int, dnnl::memory> args);
// Brings a filter to the primitive's layout, or a gradient from it.
void PackConv(const ConvPrimitive& p, const dnnl::memory& from,
              const dnnl::memory& to);

dnnl::memory ConvMemory(const ConvPrimitive::Desc& desc, const void* data);
// Memory for what `desc` describes.
StatusOr<Tensor> ConvRoom(const ConvPrimitive::Desc& desc);

}  // namespace headrace
