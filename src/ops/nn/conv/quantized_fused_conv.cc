// QuantizedConv2DWithBias and its kin: convolutions of quantized images with
// what follows them, per filter channel and depthwise.
//
// Upstream has these by oneDNN alone, in graphs whose filter is a constant;
// here they work everywhere. Levels are scaled, not shifted: an input's step is
// its range's larger end in 255 (quint8) or 127 (qint8), whatever the other end
// is. A sum with a tensor, which upstream's CPU build does not survive, follows
// the same rule.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "base/thread_pool.h"
#include "ops/math/quantize/quantized.h"
#include "ops/nn/conv/spatial_convolution.h"

namespace headrace {
namespace {

constexpr double kWhole = 2147483648.0;  // levels of qint32 above zero

// Where an op of the family has what; -1: it does not.
struct FusedInputs {
  int bias, input_range, filter_range, made_range, summand, summand_range;
  bool relu, depthwise;
  explicit FusedInputs(const ResolvedOp& op) {
    auto at = [&](StringView name) { return op.def().FindInput(name); };
    bias = at("bias");
    input_range = at("min_input");
    filter_range = at("min_filter");
    made_range = at("min_freezed_output");
    summand = at("summand");
    summand_range = at("min_summand");
    relu = absl::StrContains(op.name(), "Relu");
    depthwise = absl::StrContains(op.name(), "Depthwise");
  }
};

// The paddings of `padding_list`, eight numbers as explicit_paddings are,
// which take the place of `padding` where there are any.
Status ReadPaddingList(const ResolvedOp& op, WindowAttrs* a) {
  const auto* list = op.attrs().Get<std::vector<int64_t>>("padding_list");
  if (list == nullptr || list->empty()) return OkStatus();
  if (list->size() != 8) {
    return InvalidArgument("padding_list must contain 8 values, but got: ",
                           list->size());
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const int64_t v = (*list)[i];
    // Bounds, so that sums of sizes and paddings cannot overflow.
    if (v < 0 || v > 1 << 30) {
      return InvalidArgument("padding_list must be nonnegative, got ", v);
    }
    if ((i < 2 || i > 5) && v != 0) {
      return InvalidArgument(
          "Nonzero explicit padding in the batch or depth dimensions is not "
          "supported");
    }
  }
  a->padding = Padding::kExplicit;
  a->before = {(*list)[2], (*list)[4]};
  a->after = {(*list)[3], (*list)[5]};
  return OkStatus();
}

StatusOr<WindowAttrs> FusedConvAttrs(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(WindowAttrs a, WindowAttrs::Make(op, 2));
  if (a.batch_stride != 1 || a.channel_stride != 1) {
    return InvalidArgument(
        "Current implementation does not yet support strides in the batch and "
        "depth dimensions.");
  }
  HR_RETURN_IF_ERROR(ReadPaddingList(op, &a));
  return a;
}

// One number, or one a channel.
Status CheckChannelRange(const Shape& s, int64_t channels, StringView what) {
  if (!s.known_rank() || s.rank() == 0) return OkStatus();
  HR_RETURN_IF_ERROR(CheckRank(s, 1));
  if (s[0] < 0 || channels < 0 || s[0] == channels) return OkStatus();
  return InvalidArgument(what, " must have one value or one a channel, ",
                         channels, ", got shape ", s);
}

Status CheckFusedInputs(ShapeContext& c, const FusedInputs& at,
                        int64_t channels) {
  HR_RETURN_IF_ERROR(
      CheckRangesAreScalars(c, at.input_range, at.input_range + 2));
  for (int i : {at.filter_range, at.filter_range + 1}) {
    HR_RETURN_IF_ERROR(
        CheckChannelRange(c.input(i), channels, c.op().def().inputs[i].name));
  }
  if (!c.input(at.filter_range).CompatibleWith(c.input(at.filter_range + 1))) {
    return InvalidArgument(
        "min_filter and max_filter must have one shape, got ",
        c.input(at.filter_range), " and ", c.input(at.filter_range + 1));
  }
  if (at.bias >= 0) {
    const Shape& bias = c.input(at.bias);
    HR_RETURN_IF_ERROR(CheckRank(bias, 1));
    if (bias.known_rank() && bias[0] >= 0 && channels >= 0 &&
        bias[0] != channels) {
      return InvalidArgument("bias must have one value a channel, ", channels,
                             ", got shape ", bias);
    }
  }
  for (int i : {at.made_range, at.summand_range}) {
    if (i >= 0) HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, i, i + 2));
  }
  return OkStatus();
}

Status FusedConvShape(ShapeContext& c) {
  const FusedInputs at(c.op());
  const Shape &x = c.input(0), &filter = c.input(1);
  HR_RETURN_IF_ERROR(CheckRank(x, 4));
  HR_RETURN_IF_ERROR(CheckRank(filter, 4));
  HR_ASSIGN_OR_RETURN(WindowAttrs a, FusedConvAttrs(c.op()));
  if (filter.known_rank() && (filter[0] == 0 || filter[1] == 0)) {
    return InvalidArgument("filter patch must contain at least one element");
  }
  HR_ASSIGN_OR_RETURN(ConvGeometry g, GeometryOf(a, x, filter, at.depthwise));
  HR_RETURN_IF_ERROR(CheckFusedInputs(c, at, g.out_channels));
  Shape made = OutputShape(a, g);
  if (at.summand >= 0 && !c.input(at.summand).CompatibleWith(made)) {
    return InvalidArgument("summand must have the shape of the result, ", made,
                           ", got ", c.input(at.summand));
  }
  c.set_output(0, std::move(made));
  // Of 32 bits each channel has a range of its own.
  const Shape range = at.made_range >= 0 ? Shape() : c.input(at.filter_range);
  c.set_output(1, range);
  c.set_output(2, range);
  return OkStatus();
}

// The end of [least, most] that is farther from 0. InvalidArgument for what is
// no range.
StatusOr<double> LargestOf(const KernelContext& c, int at, int64_t i) {
  const float least = c.in<float>(at)[i], most = c.in<float>(at + 1)[i];
  if (!std::isfinite(least) || !std::isfinite(most) || least > most) {
    return InvalidArgument(c.op().name(), ": ", c.op().def().inputs[at].name,
                           " = ", least, " must not be greater than ",
                           c.op().def().inputs[at + 1].name, " = ", most);
  }
  return std::max(std::abs(static_cast<double>(least)),
                  std::abs(static_cast<double>(most)));
}

// The steps of a quantized type above zero.
double StepsAbove(DType t) { return t == DType::kQuint8 ? 255 : 127; }
// All its steps.
double StepsAcross(DType t) { return t == DType::kQuint8 ? 255 : 254; }

class FusedConv : public Kernel {
 public:
  FusedConv(const ResolvedOp& op, WindowAttrs attrs)
      : at_(op), attrs_(std::move(attrs)) {}

  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(ConvGeometry g,
                        GeometryOf(attrs_, c.input(0).shape(),
                                   c.input(1).shape(), at_.depthwise));
    HR_ASSIGN_OR_RETURN(const Scales s, ScalesOf(c, g.out_channels));
    SetRanges(c);
    if (c.output(0).num_elements() == 0) return OkStatus();
    HR_ASSIGN_OR_RETURN(Tensor x, AsInt32(c, 0));
    HR_ASSIGN_OR_RETURN(Tensor filter, AsInt32(c, 1));
    HR_ASSIGN_OR_RETURN(Tensor sums,
                        c.Temporary(DType::kInt32, c.output(0).shape()));
    HR_RETURN_IF_ERROR(
        ConvForward(DType::kInt32, g, x.raw(), filter.raw(), sums.raw()));
    switch (c.output(0).dtype()) {
      case DType::kQint32:
        Finish<int32_t>(c, s, sums);
        break;
      case DType::kQuint8:
        Finish<uint8_t>(c, s, sums);
        break;
      default:
        Finish<int8_t>(c, s, sums);
    }
    return OkStatus();
  }

 private:
  // What a step is worth: of a channel's sums, the result, the summand.
  struct Scales {
    std::vector<double> sums;
    double made = 0, summand = 0;
  };

  StatusOr<Scales> ScalesOf(const KernelContext& c, int64_t channels) const {
    HR_ASSIGN_OR_RETURN(double input, LargestOf(c, at_.input_range, 0));
    input /= StepsAbove(c.input(0).dtype());
    const bool each = c.input(at_.filter_range).rank() == 1;
    Scales s;
    double largest = 0;
    for (int64_t k = 0; k < channels; ++k) {
      HR_ASSIGN_OR_RETURN(double filter,
                          LargestOf(c, at_.filter_range, each ? k : 0));
      s.sums.push_back(input * filter / StepsAbove(c.input(1).dtype()));
      largest = std::max(largest, s.sums.back());
    }
    s.made = largest;
    if (at_.made_range >= 0) {
      HR_ASSIGN_OR_RETURN(s.made, LargestOf(c, at_.made_range, 0));
      s.made /= StepsAbove(c.output(0).dtype());
    }
    if (channels > 0 && !(s.made > 0)) {
      return InvalidArgument(c.op().name(), ": the result's range is empty");
    }
    // A summand of floats is worth what it says.
    s.summand = 1;
    if (at_.summand_range >= 0) {
      HR_ASSIGN_OR_RETURN(s.summand, LargestOf(c, at_.summand_range, 0));
      s.summand /= StepsAbove(c.input(at_.summand).dtype());
    }
    return s;
  }

  void SetRanges(const KernelContext& c) const {
    if (at_.made_range >= 0) {
      SetRange(c, *c.in<float>(at_.made_range),
               *c.in<float>(at_.made_range + 1));
      return;
    }
    // In single precision, as upstream.
    auto step = [&](int at, int64_t i, DType t) {
      return (c.in<float>(at + 1)[i] - c.in<float>(at)[i]) /
             static_cast<float>(StepsAcross(t));
    };
    const float input = step(at_.input_range, 0, c.input(0).dtype());
    for (int64_t i = 0; i < c.output(1).num_elements(); ++i) {
      const float unit = input * step(at_.filter_range, i, c.input(1).dtype());
      c.out<float>(1)[i] = unit * -static_cast<float>(kWhole);
      c.out<float>(2)[i] = unit * static_cast<float>(kWhole);
    }
  }

  static StatusOr<Tensor> AsInt32(const KernelContext& c, int i) {
    const Tensor& in = c.input(i);
    HR_ASSIGN_OR_RETURN(Tensor out, c.Temporary(DType::kInt32, in.shape()));
    const int64_t n = in.num_elements();
    if (in.dtype() == DType::kQuint8) {
      std::copy_n(LevelsIn<uint8_t>(c, i), n, out.data<int32_t>());
    } else {
      std::copy_n(LevelsIn<int8_t>(c, i), n, out.data<int32_t>());
    }
    return out;
  }

  // What is added to element `i`, of channel `k`.
  double Addend(const KernelContext& c, const Scales& s, int64_t i,
                int64_t k) const {
    double v = 0;
    if (at_.bias >= 0) {
      v = c.input(at_.bias).dtype() == DType::kFloat
              ? static_cast<double>(c.in<float>(at_.bias)[k])
              : LevelsIn<int32_t>(c, at_.bias)[k] * s.sums[k];
    }
    if (at_.summand < 0) return v;
    switch (c.input(at_.summand).dtype()) {
      case DType::kFloat:
        return v + static_cast<double>(c.in<float>(at_.summand)[i]);
      case DType::kQuint8:
        return v + LevelsIn<uint8_t>(c, at_.summand)[i] * s.summand;
      default:
        return v + LevelsIn<int8_t>(c, at_.summand)[i] * s.summand;
    }
  }

  template <typename I>
  void Finish(const KernelContext& c, const Scales& s,
              const Tensor& sums) const {
    constexpr double kLeast = std::numeric_limits<I>::lowest();
    constexpr double kMost = std::numeric_limits<I>::max();
    const auto channels = static_cast<int64_t>(s.sums.size());
    I* out = LevelsOut<I>(c, 0);
    ParallelFor(sums.num_elements(), 4.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t k = i % channels;
        double v = sums.data<int32_t>()[i] * s.sums[k] + Addend(c, s, i, k);
        if (at_.relu) v = std::max(v, 0.0);
        v = std::nearbyint(v / s.made);
        // A bias that is not a number.
        out[i] =
            std::isnan(v) ? I{0} : static_cast<I>(std::clamp(v, kLeast, kMost));
      }
    });
  }

  const FusedInputs at_;
  const WindowAttrs attrs_;
};

StatusOr<std::unique_ptr<Kernel>> BindFusedConv(const ResolvedOp& op) {
  const FusedInputs at(op);
  auto bytes = [](DType t) {
    return t == DType::kQuint8 || t == DType::kQint8;
  };
  const DType made = op.output_types()[0];
  const DType summand =
      at.summand < 0 ? DType::kFloat : op.input_types()[at.summand];
  if (!bytes(op.input_types()[0]) || op.input_types()[1] != DType::kQint8 ||
      (at.made_range >= 0 ? !bytes(made) : made != DType::kQint32) ||
      (summand != DType::kFloat && !bytes(summand))) {
    return nullptr;
  }
  HR_ASSIGN_OR_RETURN(WindowAttrs a, FusedConvAttrs(op));
  return std::unique_ptr<Kernel>(std::make_unique<FusedConv>(op, std::move(a)));
}

enum class Bias : uint8_t { kNone, kFloat, kAny };
enum class Summand : uint8_t { kNone, kFloat, kLevels };

// What tells the ops of the family apart.
struct FusedForm {
  const char* name;
  Bias bias = Bias::kNone;
  Summand summand = Summand::kNone;
  const char* frozen = nullptr;  // the type that results of a range have
  bool padding_list = true;
};

const char kLevelTypes[] = ": {qint8, quint8, qint32, qint16, quint16}";

OpBuilder FusedConvOp(const FusedForm& form) {
  OpBuilder b(form.name);
  b.Input("input: Tinput").Input("filter: Tfilter");
  if (form.bias == Bias::kFloat) b.Input("bias: float");
  if (form.bias == Bias::kAny) b.Input("bias: Tbias");
  for (const char* range : {"min_input: float", "max_input: float",
                            "min_filter: float", "max_filter: float"}) {
    b.Input(range);
  }
  if (form.frozen) {
    b.Input("min_freezed_output: float").Input("max_freezed_output: float");
  }
  if (form.summand == Summand::kFloat) b.Input("summand: float");
  if (form.summand == Summand::kLevels) {
    b.Input("summand: Tsummand")
        .Input("min_summand: float")
        .Input("max_summand: float");
  }
  b.Output("output: out_type")
      .Output("min_output: float")
      .Output("max_output: float");
  auto levels = [&](const char* name, const char* rest = "") {
    b.Attr(absl::StrCat(name, kLevelTypes, rest).c_str());
  };
  levels("Tinput");
  levels("Tfilter");
  if (form.bias == Bias::kAny) b.Attr("Tbias: {float, qint32}");
  if (form.summand == Summand::kLevels) levels("Tsummand");
  levels("out_type",
         absl::StrCat(" = ", form.frozen ? form.frozen : "DT_QINT32").c_str());
  b.Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("dilations: list(int) = [1, 1, 1, 1]");
  if (form.padding_list) b.Attr("padding_list: list(int) = []");
  b.Doc("A convolution of quantized images, and what follows it, in one.")
      .Shape(FusedConvShape)
      .Cpu(BindFusedConv);
  return b;
}

constexpr const char* kBytes = "DT_QUINT8";
constexpr const char* kSignedBytes = "DT_QINT8";
[[maybe_unused]] const OpRegistrar kFusedConvs[] = {
    FusedConvOp({"QuantizedConv2DAndRelu"}),
    FusedConvOp({"QuantizedConv2DAndReluAndRequantize", Bias::kNone,
                 Summand::kNone, kBytes}),
    FusedConvOp({"QuantizedConv2DAndRequantize", Bias::kNone, Summand::kNone,
                 kSignedBytes}),
    FusedConvOp({"QuantizedConv2DPerChannel", Bias::kNone, Summand::kNone,
                 nullptr, false}),
    FusedConvOp({"QuantizedConv2DWithBias", Bias::kFloat}),
    FusedConvOp({"QuantizedConv2DWithBiasAndRelu", Bias::kFloat}),
    FusedConvOp({"QuantizedConv2DWithBiasAndReluAndRequantize", Bias::kAny,
                 Summand::kNone, kBytes}),
    FusedConvOp({"QuantizedConv2DWithBiasAndRequantize", Bias::kAny,
                 Summand::kNone, kSignedBytes}),
    FusedConvOp({"QuantizedConv2DWithBiasSignedSumAndReluAndRequantize",
                 Bias::kAny, Summand::kLevels, kBytes}),
    FusedConvOp(
        {"QuantizedConv2DWithBiasSumAndRelu", Bias::kFloat, Summand::kFloat}),
    FusedConvOp({"QuantizedConv2DWithBiasSumAndReluAndRequantize", Bias::kAny,
                 Summand::kLevels, kBytes}),
    FusedConvOp({"QuantizedDepthwiseConv2D", Bias::kNone, Summand::kNone,
                 nullptr, false}),
    FusedConvOp({"QuantizedDepthwiseConv2DWithBias", Bias::kFloat,
                 Summand::kNone, nullptr, false}),
    FusedConvOp({"QuantizedDepthwiseConv2DWithBiasAndRelu", Bias::kFloat}),
    FusedConvOp({"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
                 Bias::kAny, Summand::kNone, kBytes}),
};

}  // namespace
}  // namespace headrace
