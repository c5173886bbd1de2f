#include "ops/nn/conv/spatial_convolution.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/bits.h"
#include "absl/strings/match.h"
#include "base/thread_pool.h"
#include "op/passes/call_work.h"
#include "op/passes/product_kernel.h"
#include "op/shared_refusal.h"
#include "ops/nn/conv/task_split.h"
#include "ops/nn/conv/winograd.h"

namespace headrace {
namespace {

enum class Result { kOutput, kInput, kFilter };

// What the op's name says.
struct ConvKind {
  int spatial;
  bool depthwise;
  Result result;
  bool sizes_given;  // the result's sizes are a vector, not a tensor
  explicit ConvKind(const std::string& name)
      : spatial(absl::StartsWith(name, "Conv3D") ? 3 : 2),
        depthwise(absl::StartsWith(name, "Depthwise")),
        result(absl::StrContains(name, "BackpropInput")    ? Result::kInput
               : absl::StrContains(name, "BackpropFilter") ? Result::kFilter
                                                           : Result::kOutput) {
    // The two-dimensional V2 ops take a tensor like the result, the
    // three-dimensional ones its sizes: history.
    const bool v2 = absl::EndsWith(name, "V2");
    sizes_given = spatial == 3 ? v2 : !v2;
  }
  int sizes_input() const { return result == Result::kInput ? 0 : 1; }
};

StatusOr<WindowAttrs> AttrsOf(const ResolvedOp& op, const ConvKind& kind) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, WindowAttrs::Make(op, kind.spatial));
  if (a.batch_stride != 1 || a.channel_stride != 1) {
    return Unimplemented(
        "Current implementation does not yet support strides in the batch and "
        "depth dimensions.");
  }
  if (kind.depthwise && a.strides[0] != a.strides[1]) {
    return InvalidArgument(
        "Current implementation only supports equal length strides in the row "
        "and column dimensions.");
  }
  return a;
}

// The shape that input 0 or 1 holds as a vector, or has as a tensor.
StatusOr<Shape> SizesShape(ShapeContext& c, const ConvKind& kind) {
  const int i = kind.sizes_input();
  return kind.sizes_given ? c.ShapeValue(i) : StatusOr<Shape>(c.input(i));
}

// Sizes may be the spatial ones alone: batch and channels follow.
Shape CompletedInput(const WindowAttrs& a, const Shape& sizes,
                     const Shape& filter, const Shape& dy) {
  const int rank = a.spatial + 2;
  if (sizes.rank() != a.spatial || filter.rank() != rank || dy.rank() != rank) {
    return sizes;
  }
  return a.MakeShape(dy[0], sizes.dims(), filter[a.spatial]);
}

// dy must be what the forward pass would have made.
Status CheckBackprop(const ResolvedOp& op, const WindowAttrs& a,
                     const ConvGeometry& g, const Shape& dy) {
  if (!dy.known_rank()) return OkStatus();
  const std::string& name = op.name();
  if (dy.rank() != a.spatial + 2) {
    return InvalidArgument(name, ": out_backprop must be ", a.spatial + 2,
                           "-dimensional");
  }
  auto differ = [](int64_t x, int64_t y) { return x >= 0 && y >= 0 && x != y; };
  if (differ(dy[0], g.batch)) {
    return InvalidArgument(
        name,
        ": input and out_backprop must have the same batch size. Input "
        "batch: ",
        g.batch, ", outbackprop batch: ", dy[0], ", batch_dim: 0");
  }
  if (differ(dy[a.channel_axis()], g.out_channels)) {
    return InvalidArgument(
        name, ": filter and out_backprop must have the same out_depth");
  }
  for (int i = 0; i < a.spatial; ++i) {
    // Fewer spatial dimensions stand behind windows of one.
    const Window& w = g.windows[3 - a.spatial + i];
    const int64_t actual = dy[a.spatial_axis(i)];
    if (differ(actual, w.out)) {
      return InvalidArgument(
          name,
          ": Size of out_backprop doesn't match computed: actual = ", actual,
          ", computed = ", w.out, " spatial_dim: ", a.spatial_axis(i),
          " input: ", w.in, " filter: ", w.size, " output: ", actual,
          " stride: ", w.stride, " dilation: ", w.dilation);
    }
  }
  return OkStatus();
}

// How a pass is cut.
ConvTasks TasksOf(const ConvGeometry& g, Result pass) {
  if (pass == Result::kOutput) return SplitConv(g, ForwardCuts(g));
  if (pass == Result::kFilter) return SplitConv(g, FilterCuts(g));
  const ConvGeometry as = GradientAsConv(g);
  return WinogradTakes(as) ? SplitConv(as, ForwardCuts(as))
                           : SplitConv(g, InputCuts());
}

// What one pass of a convolution takes. `direct`: oneDNN takes it as it lies.
CallWork WorkOfConv(const StatusOr<ConvGeometry>& g, Result pass, bool direct) {
  // (The run says what is wrong.)
  if (!g.ok() || g->multiplications() == 0) return {};
  const ConvTasks tasks = TasksOf(*g, pass);
  // Copies and our own loops are cut by pixels.
  if (!direct) return {tasks.ns, g->batch * g->out_pixels()};
  return {tasks.ns * static_cast<double>(tasks.count()), tasks.count()};
}

// Whether an operand of a forward pass has no elements.
bool Empty(const KernelContext& c) {
  return c.input(0).num_elements() == 0 || c.input(1).num_elements() == 0;
}

// What a forward pass of these operands is.
StatusOr<ConvGeometry> ForwardGeometry(const KernelContext& c,
                                       const WindowAttrs& attrs, int batch_dims,
                                       bool depthwise) {
  return GeometryOf(attrs, OneBatch(c.input(0).shape(), batch_dims),
                    c.input(1).shape(), depthwise);
}

// A convolution with steps behind it, of float with the channels last. A steady
// scale that comes first is part of the filter: oneDNN's steps of a row take
// longer than all else behind a convolution of few channels.
class FinishedConv : public FinishedProduct {
 public:
  FinishedConv(bool depthwise, int batch_dims, WindowAttrs attrs,
               FinishSteps steps)
      : depthwise_(depthwise),
        scales_(!steps.empty() && steps[0].steady),
        batch_dims_(batch_dims),
        attrs_(std::move(attrs)),
        steps_(std::move(steps)) {
    if (scales_) steps_.erase(steps_.begin());
  }

  StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext& c, FinishRows rows) const override {
    if (c.output(0).num_elements() == 0 || Empty(c)) {
      return std::shared_ptr<const void>();
    }
    HR_ASSIGN_OR_RETURN(ConvGeometry g,
                        ForwardGeometry(c, attrs_, batch_dims_, depthwise_));
    HR_ASSIGN_OR_RETURN(auto made, Make(c, g, rows));
    return std::shared_ptr<const void>(std::move(made));
  }

  bool Fits(const void* prepared, FinishRows rows) const override {
    if (!scales_ || prepared == nullptr) return true;
    const std::vector<float>& scale =
        static_cast<const Prepared*>(prepared)->scale;
    return std::equal(
        scale.begin(), scale.end(), rows[0], [](float a, float b) {
          return absl::bit_cast<uint32_t>(a) == absl::bit_cast<uint32_t>(b);
        });
  }

  StatusOr<bool> Run(KernelContext& c, const void* prepared,
                     FinishRows rows) const override {
    if (c.output(0).num_elements() == 0 || Empty(c)) return false;
    HR_ASSIGN_OR_RETURN(ConvGeometry g,
                        ForwardGeometry(c, attrs_, batch_dims_, depthwise_));
    const float* x = c.input(0).data<float>();
    float* y = c.output(0).data<float>();
    const FinishRows behind = scales_ ? rows.subspan(1) : rows;
    if (const auto* kept = static_cast<const Prepared*>(prepared)) {
      HR_ASSIGN_OR_RETURN(
          const bool made,
          kept->conv->RunFinished(g, x, Filter(c, *kept), y, behind));
      if (made) return true;
    }
    HR_ASSIGN_OR_RETURN(auto made, Make(c, g, rows));
    if (!made) return false;
    return made->conv->RunFinished(g, x, Filter(c, *made), y, behind);
  }

 private:
  struct Prepared {
    std::vector<float> scale;  // that the filter was multiplied by
    Tensor scaled;             // the filter, where the convolution reads it
    std::shared_ptr<const PreparedConv> conv;
  };

  static const float* Filter(const KernelContext& c, const Prepared& p) {
    return (p.scaled.has_buffer() ? p.scaled : c.input(1)).data<float>();
  }

  // Null where oneDNN has no such convolution.
  StatusOr<std::shared_ptr<const Prepared>> Make(const KernelContext& c,
                                                 const ConvGeometry& g,
                                                 FinishRows rows) const {
    auto made = std::make_shared<Prepared>();
    if (scales_) {
      made->scale.assign(rows[0], rows[0] + g.out_channels);
      HR_ASSIGN_OR_RETURN(made->scaled, Scaled(c.input(1), made->scale));
    }
    HR_ASSIGN_OR_RETURN(made->conv,
                        PreparedConv::Make(g, Filter(c, *made), steps_));
    if (!made->conv) return std::shared_ptr<const Prepared>();
    if (!made->conv->reads_filter()) made->scaled = Tensor();
    return std::shared_ptr<const Prepared>(std::move(made));
  }

  // The filter, whose last dimensions are output channels, times one number a
  // channel.
  static StatusOr<Tensor> Scaled(const Tensor& filter,
                                 absl::Span<const float> scale) {
    HR_ASSIGN_OR_RETURN(Tensor to,
                        Tensor::Allocate(filter.dtype(), filter.shape()));
    const int64_t n = static_cast<int64_t>(scale.size());
    ParallelFor(filter.num_elements() / n, 0.3 * static_cast<double>(n),
                [&](int64_t begin, int64_t end) {
                  const float* from = filter.data<float>();
                  for (int64_t r = begin * n; r < end * n; r += n) {
                    for (int64_t j = 0; j < n; ++j) {
                      to.data<float>()[r + j] = from[r + j] * scale[j];
                    }
                  }
                });
    return to;
  }

  const bool depthwise_, scales_;
  const int batch_dims_;
  const WindowAttrs attrs_;
  FinishSteps steps_;  // but for the scale
};

// A convolution itself; its gradients are ConvKernels.
class ForwardConv : public ProductKernel, public KnowsWork {
 public:
  ForwardConv(bool depthwise, int batch_dims, WindowAttrs attrs, DType dtype)
      : depthwise_(depthwise),
        batch_dims_(batch_dims),
        attrs_(std::move(attrs)),
        // oneDNN takes float with the channels last; all else goes by copies or
        // our own loops.
        direct_(dtype == DType::kFloat && !attrs_.channels_first) {}

  bool tells_rows() const override { return direct_; }
  bool hands_rows() const override { return direct_; }
  bool prepares() const override { return direct_; }

  StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext& c) const override {
    if (!direct_ || Empty(c)) return std::shared_ptr<const void>();
    HR_ASSIGN_OR_RETURN(ConvGeometry g,
                        ForwardGeometry(c, attrs_, batch_dims_, depthwise_));
    HR_ASSIGN_OR_RETURN(auto made,
                        PreparedConv::Make(g, c.input(1).data<float>()));
    return std::shared_ptr<const void>(std::move(made));
  }

  std::unique_ptr<FinishedProduct> Finished(
      const FinishSteps& steps) const override {
    if (!direct_) return nullptr;
    return std::make_unique<FinishedConv>(depthwise_, batch_dims_, attrs_,
                                          steps);
  }

  CallWork WorkOf(absl::Span<const Shape* const> in,
                  absl::Span<const Shape* const>) const override {
    return WorkOfConv(
        GeometryOf(attrs_, OneBatch(*in[0], batch_dims_), *in[1], depthwise_),
        Result::kOutput, direct_);
  }

  Status RunPrepared(KernelContext& c, const void* prepared,
                     const Tail* tail) const override {
    HR_ASSIGN_OR_RETURN(ConvGeometry g,
                        ForwardGeometry(c, attrs_, batch_dims_, depthwise_));
    const Tensor& out = c.output(0);
    if (out.num_elements() == 0) return OkStatus();
    if (!direct_) return RunMoved(c, g);
    const float *x = c.input(0).data<float>(), *f = c.input(1).data<float>();
    auto tell_rows = [&](int64_t begin, int64_t end, const float* pixels) {
      if (tail) tail->done(begin, end, pixels);
    };
    const ConvPixelsDone done(tell_rows);
    // The tail takes each row while it is in the cache; the product itself is
    // not stored.
    const bool hands = tail && tail->hands;
    if (!Empty(c)) {
      float* y = hands ? nullptr : out.data<float>();
      const auto* conv = static_cast<const PreparedConv*>(prepared);
      bool made = conv && conv->Run(g, x, f, y, tail ? &done : nullptr);
      // A prepared filter that does not fit: without a tail ConvForward below
      // tries oneDNN itself.
      if (!made && tail) {
        HR_ASSIGN_OR_RETURN(made, DnnlConvForward(g, x, f, y, &done));
      }
      if (made) return OkStatus();
    }
    Tensor y = out;
    if (hands) {
      HR_ASSIGN_OR_RETURN(y, c.Temporary(out.dtype(), out.shape()));
    }
    HR_RETURN_IF_ERROR(ConvForward(out.dtype(), g, x, f, y.raw()));
    tell_rows(0, g.batch * g.out_pixels(), y.data<float>());
    return OkStatus();
  }

 private:
  // Through copies with the channels last, where they are first.
  Status RunMoved(KernelContext& c, const ConvGeometry& g) const {
    const Tensor &x = c.input(0), &f = c.input(1), &out = c.output(0);
    if (!attrs_.channels_first) {
      return ConvForward(out.dtype(), g, x.raw(), f.raw(), out.raw());
    }
    HR_ASSIGN_OR_RETURN(
        Tensor last,
        ChannelsLast(x.WithShape(OneBatch(x.shape(), batch_dims_))));
    HR_ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(out.dtype(), out.shape()));
    HR_RETURN_IF_ERROR(
        ConvForward(out.dtype(), g, last.raw(), f.raw(), y.raw()));
    return ChannelsFirstInto(y,
                             out.WithShape(OneBatch(out.shape(), batch_dims_)));
  }

  const bool depthwise_;
  const int batch_dims_;
  const WindowAttrs attrs_;
  const bool direct_;
};

class ConvKernel : public Kernel, public KnowsWork {
 public:
  ConvKernel(const ConvKind& kind, WindowAttrs attrs, DType dtype)
      : kind_(kind),
        attrs_(std::move(attrs)),
        direct_(dtype == DType::kFloat && !attrs_.channels_first) {}

  Status Run(KernelContext& c) override {
    const Tensor& out = c.output(0);
    const bool to_input = kind_.result == Result::kInput;
    HR_ASSIGN_OR_RETURN(
        ConvGeometry g,
        Geometry(c.input(0).shape(), c.input(1).shape(), out.shape()));
    return to_input ? RunInput(c, g) : RunFilter(c, g);
  }

  CallWork WorkOf(absl::Span<const Shape* const> in,
                  absl::Span<const Shape* const> out) const override {
    return WorkOfConv(Geometry(*in[0], *in[1], *out[0]), kind_.result, direct_);
  }

 private:
  // Of the inputs' and the output's shapes.
  StatusOr<ConvGeometry> Geometry(const Shape& first, const Shape& second,
                                  const Shape& out) const {
    const bool to_input = kind_.result == Result::kInput;
    return GeometryOf(attrs_, to_input ? out : first, to_input ? second : out,
                      kind_.depthwise);
  }
  StatusOr<Tensor> Last(const Tensor& t) const {
    if (!attrs_.channels_first) return t;
    return ChannelsLast(t);
  }
  // Room for the result with its channels last.
  StatusOr<Tensor> LastRoom(const Tensor& out) const {
    if (!attrs_.channels_first) return out;
    return Tensor::Allocate(out.dtype(), out.shape());
  }
  Status Hand(const Tensor& made, const Tensor& out) const {
    return attrs_.channels_first ? ChannelsFirstInto(made, out) : OkStatus();
  }

  Status RunInput(KernelContext& c, const ConvGeometry& g) {
    const Tensor& out = c.output(0);
    HR_ASSIGN_OR_RETURN(Tensor dy, Last(c.input(2)));
    HR_ASSIGN_OR_RETURN(Tensor dx, LastRoom(out));
    HR_RETURN_IF_ERROR(ConvBackwardInput(out.dtype(), g, c.input(1).raw(),
                                         dy.raw(), dx.raw()));
    return Hand(dx, out);
  }
  Status RunFilter(KernelContext& c, const ConvGeometry& g) {
    HR_ASSIGN_OR_RETURN(Tensor x, Last(c.input(0)));
    HR_ASSIGN_OR_RETURN(Tensor dy, Last(c.input(2)));
    return ConvBackwardFilter(c.output(0).dtype(), g, x.raw(), dy.raw(),
                              c.output(0).raw());
  }

  const ConvKind kind_;
  const WindowAttrs attrs_;
  const bool direct_;  // as ForwardConv's
};

}  // namespace

StatusOr<ConvGeometry> GeometryOf(const WindowAttrs& a, const Shape& x,
                                  const Shape& filter, bool depthwise,
                                  ShapeContext* c) {
  const int rank = a.spatial + 2;
  if (x.known_rank() && x.rank() != rank) {
    return Refuse(c, RankIsNot(rank, x.rank()),
                  InvalidArgument("convolution input must be ", rank,
                                  "-dimensional: ", x));
  }
  if (filter.known_rank() && filter.rank() != rank) {
    return Refuse(c, RankIsNot(rank, filter.rank()),
                  InvalidArgument("convolution filter must be ", rank,
                                  "-dimensional: ", filter));
  }
  ConvGeometry g;
  const bool know_x = x.known_rank(), know_f = filter.known_rank();
  g.batch = know_x ? x[0] : -1;
  g.in_channels = know_x ? x[a.channel_axis()] : -1;
  // The filter has a group's channels; the input all of them.
  const int64_t depth = know_f ? filter[a.spatial] : -1;
  g.out_channels = know_f ? filter[a.spatial + 1] : -1;
  if (depthwise) {
    if (depth >= 0 && g.in_channels >= 0 && depth != g.in_channels) {
      return Refuse(
          c, DimensionsDiffer(g.in_channels, depth),
          InvalidArgument("input and filter must have the same depth: ",
                          g.in_channels, " vs ", depth));
    }
    if (g.in_channels < 0) g.in_channels = depth;
    // Each channel is a group.
    g.groups = g.in_channels;
    g.out_channels = g.in_channels < 0 || g.out_channels < 0
                         ? -1
                         : g.in_channels * g.out_channels;
  } else if (depth >= 0 && g.in_channels >= 0) {
    if (depth == 0 && g.in_channels > 0) {
      return InvalidArgument("filter depth must be strictly positive, but got ",
                             depth);
    }
    if (depth > 0 && g.in_channels % depth != 0) {
      return Refuse(
          c,
          {absl::StrCat("Depth of input (", g.in_channels,
                        ") is not a multiple of input depth of filter (", depth,
                        ")")},
          InvalidArgument(
              "input depth must be evenly divisible by filter depth: ",
              g.in_channels, " vs ", depth));
    }
    g.groups = depth > 0 ? g.in_channels / depth : 1;
    // An input without channels.
    if (g.groups == 0) g.groups = 1;
    if (g.out_channels >= 0 && g.out_channels % g.groups != 0) {
      return InvalidArgument(
          "output depth must be evenly divisible by number of groups: ",
          g.out_channels, " vs ", g.groups);
    }
  }
  for (int i = 0; i < 3; ++i) {
    Window& w = g.windows[i];
    const int at = i - (3 - a.spatial);
    // Missing dimensions come first, with one pixel each.
    if (at < 0) {
      w.in = w.out = 1;
      continue;
    }
    w.in = know_x ? x[a.spatial_axis(at)] : -1;
    w.size = know_f ? filter[at] : -1;
    w.stride = a.strides[at];
    w.dilation = a.dilations[at];
    w.before = a.before[at];
    w.after = a.after[at];
    // Only graphs word this refusal apart.
    if (c != nullptr) {
      HR_RETURN_IF_ERROR(
          CheckWindowInGraph(*c, a.padding, w.in, w.size, w.dilation));
    }
    HR_RETURN_IF_ERROR(SolveWindow(a.padding, &w));
  }
  return g;
}

Shape OutputShape(const WindowAttrs& a, const ConvGeometry& g) {
  absl::InlinedVector<int64_t, 3> sizes;
  for (int i = 3 - a.spatial; i < 3; ++i) sizes.push_back(g.windows[i].out);
  return a.MakeShape(g.batch, sizes, g.out_channels);
}

Status ConvShape(ShapeContext& c) {
  const ConvKind kind(c.op().name());
  HR_ASSIGN_OR_RETURN(WindowAttrs a, AttrsOf(c.op(), kind));
  if (kind.result == Result::kOutput) {
    const auto sizes = c.input(1).dims();
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
      const int rank = a.spatial + 2;
      ShapeRefusal in_graph;  // the ranks first
      for (int i : {1, 0}) {
        const Shape& s = c.input(i);
        if (s.known_rank() && s.rank() != rank) {
          in_graph = RankIsNot(rank, s.rank());
        }
      }
      return c.Refuse(
          std::move(in_graph),
          InvalidArgument("filter must not have zero elements (i.e. all "
                          "dimensions must be non-zero)"));
    }
    HR_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOf(a, c.input(0), c.input(1),
                                                   kind.depthwise, &c));
    c.set_output(0, OutputShape(a, g));
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(Shape sizes, SizesShape(c, kind));
  const bool input = kind.result == Result::kInput;
  if (input && kind.sizes_given) {
    sizes = CompletedInput(a, sizes, c.input(1), c.input(2));
  }
  HR_ASSIGN_OR_RETURN(ConvGeometry g,
                      GeometryOf(a, input ? sizes : c.input(0),
                                 input ? c.input(1) : sizes, kind.depthwise));
  HR_RETURN_IF_ERROR(CheckBackprop(c.op(), a, g, c.input(2)));
  if (!sizes.known_rank()) sizes = Shape::UnknownOfRank(a.spatial + 2);
  c.set_output(0, std::move(sizes));
  return OkStatus();
}

Shape OneBatch(const Shape& x, int batch_dims) {
  if (batch_dims == 1) return x;
  int64_t batch = 1;
  for (int i = 0; i < batch_dims; ++i) {
    if (x[i] == 0) batch = 0;
    // Only without elements can there be so many images.
    if (!MultiplyChecked(batch, x[i], &batch)) {
      batch = std::numeric_limits<int64_t>::max();
    }
  }
  Shape s{batch};
  for (int i = batch_dims; i < x.rank(); ++i) s.AddDim(x[i]);
  return s;
}

std::unique_ptr<Kernel> MakeForwardConv(bool depthwise, int batch_dims,
                                        WindowAttrs attrs, DType dtype) {
  return std::make_unique<ForwardConv>(depthwise, batch_dims, std::move(attrs),
                                       dtype);
}

StatusOr<std::unique_ptr<Kernel>> BindConv(const ResolvedOp& op) {
  const ConvKind kind(op.name());
  HR_ASSIGN_OR_RETURN(WindowAttrs a, AttrsOf(op, kind));
  if (kind.result == Result::kOutput) {
    return MakeForwardConv(kind.depthwise, 1, std::move(a), op.type_attr("T"));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<ConvKernel>(kind, std::move(a), op.type_attr("T")));
}

}  // namespace headrace
