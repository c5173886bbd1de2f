// Windows that slide over a dimension: what convolutions and pools share.
#pragma once

#include <string>
#include <vector>

#include "op/op.h"

namespace headrace {

enum class Padding : uint8_t { kValid, kSame, kExplicit };

// A window along one dimension: where it begins for each output.
struct Window {
  int64_t in = 0, out = 0;  // -1: not known
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding
  int64_t begin(int64_t o) const { return o * stride - before; }
};

// Fills `out` and, unless explicit, the padding. InvalidArgument when the
// window does not fit.
Status SolveWindow(Padding padding, Window* w);

// Graphs refuse windows that reach over the end of what they slide over, which
// eager calls make nothing of.
Status CheckWindowInGraph(ShapeContext& c, Padding padding, int64_t in,
                          int64_t size, int64_t dilation);

// The attributes of a sliding op over `spatial` dimensions.
struct WindowAttrs {
  int spatial = 2;
  bool channels_first = false;
  Padding padding = Padding::kValid;
  // One entry a spatial dimension.
  absl::InlinedVector<int64_t, 3> strides, dilations, before, after;
  // Strides of the batch and of the channels.
  int64_t batch_stride = 1, channel_stride = 1;

  // Reads strides, padding, explicit_paddings, data_format, dilations.
  static StatusOr<WindowAttrs> Make(const ResolvedOp& op, int spatial);

  int channel_axis() const { return channels_first ? 1 : spatial + 1; }
  int spatial_axis(int i) const { return channels_first ? 2 + i : 1 + i; }
  // A shape of this layout.
  Shape MakeShape(int64_t batch, absl::Span<const int64_t> sizes,
                  int64_t channels) const;
};

// `v`'s entries for the spatial dimensions, and those of batch and channels,
// which stand as the layout says. InvalidArgument for a wrong count.
Status SplitByLayout(const WindowAttrs& a, const std::vector<int64_t>& v,
                     absl::InlinedVector<int64_t, 3>* spatial, int64_t* batch,
                     int64_t* channels);

// The tensor with its channels last or first (a copy), for kernels that know
// only channels last.
StatusOr<Tensor> ChannelsLast(const Tensor& t);
Status ChannelsFirstInto(const Tensor& last, const Tensor& first);

}  // namespace headrace
