#include "ops/nn/window.h"

#include <algorithm>

#include "ops/array/block_copy.h"

namespace headrace {

Status SolveWindow(Padding padding, Window* w) {
  if (w->in < 0 || w->size < 0) {
    w->out = -1;
    return OkStatus();
  }
  // From the first tap to the last.
  const int64_t reach = (w->size - 1) * w->dilation + 1;
  if (padding == Padding::kSame) {
    w->out = (w->in + w->stride - 1) / w->stride;
    const int64_t total =
        std::max<int64_t>(0, (w->out - 1) * w->stride + reach - w->in);
    // As upstream: what is missing for ceil(in / stride) windows, the odd one
    // behind.
    w->before = total / 2;
    w->after = total - w->before;
    return OkStatus();
  }
  // Whole windows only; rounded towards 0, as upstream's division.
  const int64_t room = w->in + w->before + w->after - reach + w->stride;
  if (room < 0) {
    return InvalidArgument(
        "Computed output size would be negative: ", room / w->stride,
        " [input_size: ", w->in, ", effective_filter_size: ", reach,
        ", stride: ", w->stride, "]");
  }
  w->out = room / w->stride;
  return OkStatus();
}

Status CheckWindowInGraph(ShapeContext& c, Padding padding, int64_t in,
                          int64_t size, int64_t dilation) {
  if (!c.in_graph() || padding != Padding::kValid || in < 0 || size < 1) {
    return OkStatus();
  }
  int64_t reach;
  // Without the tap at the start: upstream words it by this.
  if (!MultiplyChecked(size - 1, dilation, &reach) || reach < in) {
    return OkStatus();
  }
  return c.Refuse(
      {absl::StrCat("Negative dimension size caused by subtracting ", reach + 1,
                    " from ", in)},
      InvalidArgument("a window of ", reach + 1, " over ", in));
}

Status SplitByLayout(const WindowAttrs& a, const std::vector<int64_t>& v,
                     absl::InlinedVector<int64_t, 3>* spatial, int64_t* batch,
                     int64_t* channels) {
  if (static_cast<int>(v.size()) != a.spatial + 2) {
    return InvalidArgument("Sliding window strides field must specify ",
                           a.spatial + 2, " dimensions");
  }
  *batch = v[0];
  *channels = v[a.channel_axis()];
  spatial->clear();
  for (int i = 0; i < a.spatial; ++i) spatial->push_back(v[a.spatial_axis(i)]);
  return OkStatus();
}

namespace {

Status ReadPaddings(const ResolvedOp& op, WindowAttrs* a) {
  const std::string& padding = op.string_attr("padding");
  a->padding = padding == "SAME"    ? Padding::kSame
               : padding == "VALID" ? Padding::kValid
                                    : Padding::kExplicit;
  a->before.assign(a->spatial, 0);
  a->after.assign(a->spatial, 0);
  const auto* explicit_paddings =
      op.attrs().Get<std::vector<int64_t>>("explicit_paddings");
  if (a->padding != Padding::kExplicit) {
    if (explicit_paddings && !explicit_paddings->empty()) {
      return InvalidArgument(
          "explicit_paddings attribute must be empty if the padding attribute "
          "is not EXPLICIT");
    }
    return OkStatus();
  }
  const int wanted = 2 * (a->spatial + 2);
  const int count = explicit_paddings ? explicit_paddings->size() : 0;
  if (count != wanted) {
    return InvalidArgument("explicit_paddings attribute must contain ", wanted,
                           " values, but got: ", count);
  }
  for (int64_t v : *explicit_paddings) {
    // Bounds, so that sums of sizes and paddings cannot overflow.
    if (v < 0 || v > 1 << 30) {
      return InvalidArgument(
          "All elements of explicit_paddings must be nonnegative");
    }
  }
  const int c = a->channel_axis();
  for (int at : {0, 1, 2 * c, 2 * c + 1}) {
    if ((*explicit_paddings)[at] != 0) {
      return InvalidArgument(
          "Nonzero explicit padding in the batch or depth dimensions is not "
          "supported");
    }
  }
  for (int i = 0; i < a->spatial; ++i) {
    a->before[i] = (*explicit_paddings)[2 * a->spatial_axis(i)];
    a->after[i] = (*explicit_paddings)[2 * a->spatial_axis(i) + 1];
  }
  return OkStatus();
}

}  // namespace

StatusOr<WindowAttrs> WindowAttrs::Make(const ResolvedOp& op, int spatial) {
  WindowAttrs a;
  a.spatial = spatial;
  if (const auto* format = op.attrs().Get<std::string>("data_format")) {
    a.channels_first =
        *format == "NCHW" || *format == "NCDHW" || *format == "CHANNELS_FIRST";
    if (*format == "NCHW_VECT_C") {
      return InvalidArgument(op.name(),
                             " with data_format NCHW_VECT_C is for GPUs");
    }
  }
  if (const auto* strides = op.attrs().Get<std::vector<int64_t>>("strides")) {
    HR_RETURN_IF_ERROR(SplitByLayout(a, *strides, &a.strides, &a.batch_stride,
                                     &a.channel_stride));
  } else {
    a.strides.assign(spatial, 1);
  }
  a.dilations.assign(spatial, 1);
  // Conv's default, no entry, is 1 everywhere.
  const auto* dilations = op.attrs().Get<std::vector<int64_t>>("dilations");
  if (dilations && !(dilations->empty() && op.name() == "Conv")) {
    int64_t batch = 1, channels = 1;
    if (static_cast<int>(dilations->size()) != spatial + 2) {
      return InvalidArgument("Sliding window dilations field must specify ",
                             spatial + 2, " dimensions");
    }
    HR_RETURN_IF_ERROR(
        SplitByLayout(a, *dilations, &a.dilations, &batch, &channels));
    if (batch != 1 || channels != 1) {
      return Unimplemented(
          "Current implementation does not yet support dilations in the batch "
          "and depth dimensions.");
    }
  }
  for (int64_t s : a.strides) {
    if (s <= 0 || s > 1 << 30) {
      return InvalidArgument("Row and column strides should be larger than 0.");
    }
  }
  for (int64_t d : a.dilations) {
    if (d <= 0 || d > 1 << 30) {
      return InvalidArgument("Dilated rates should be larger than 0.");
    }
  }
  HR_RETURN_IF_ERROR(ReadPaddings(op, &a));
  return a;
}

Shape WindowAttrs::MakeShape(int64_t batch, absl::Span<const int64_t> sizes,
                             int64_t channels) const {
  Shape s{batch};
  if (channels_first) s.AddDim(channels);
  for (int64_t size : sizes) s.AddDim(size);
  if (!channels_first) s.AddDim(channels);
  return s;
}

StatusOr<Tensor> ChannelsLast(const Tensor& t) {
  const int64_t batch = t.dim(0), channels = t.dim(1);
  const int64_t inner = t.shape().Product(2, t.rank());
  Shape s{batch};
  for (int i = 2; i < t.rank(); ++i) s.AddDim(t.dim(i));
  s.AddDim(channels);
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(t.dtype(), s));
  // One copy of a permuted block; its loops turn small matrices in the cache.
  CopyBlock(t.dtype(), t.raw(), out.raw(),
            {{batch, channels * inner, channels * inner},
             {inner, 1, channels},
             {channels, inner, 1}});
  return out;
}

Status ChannelsFirstInto(const Tensor& last, const Tensor& first) {
  const int64_t batch = first.dim(0), channels = first.dim(1);
  const int64_t inner = first.shape().Product(2, first.rank());
  CopyBlock(first.dtype(), last.raw(), first.raw(),
            {{batch, channels * inner, channels * inner},
             {channels, 1, inner},
             {inner, channels, 1}});
  return OkStatus();
}

}  // namespace headrace
