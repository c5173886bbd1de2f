// QuantizedMatMulWithBias and its forms with what follows a product; Requantize
// by channel.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/run_kernel.h"

namespace headrace {
namespace {

constexpr double kInt32Steps = 2147483648.0;

StatusOr<float> ScalarFloat(const KernelContext& c, int i) {
  if (c.input(i).num_elements() == 1) return c.input(i).scalar<float>();
  return InvalidArgument(c.op().def().inputs[i].name,
                         " must be a scalar, got shape ", c.input(i).shape());
}

// A range [least, most] of a quantized operand.
struct Range {
  float least = 0, most = 0;
  double Largest() const {
    return std::max(std::abs(static_cast<double>(least)),
                    std::abs(static_cast<double>(most)));
  }
};

StatusOr<Range> RangeInputs(const KernelContext& c, int i) {
  Range r;
  HR_ASSIGN_OR_RETURN(r.least, ScalarFloat(c, i));
  HR_ASSIGN_OR_RETURN(r.most, ScalarFloat(c, i + 1));
  if (std::isfinite(r.least) && std::isfinite(r.most) && r.least < r.most) {
    return r;
  }
  return InvalidArgument(c.op().name(), ": ", c.op().def().inputs[i].name,
                         " = ", r.least, " must be less than ",
                         c.op().def().inputs[i + 1].name, " = ", r.most);
}

// --- The product: quint8 by qint8, and a bias, in steps of the product of
// scales.

struct Product {
  int64_t rows = 0, inner = 0, columns = 0;
  bool turned_a = false, turned_b = false;
  double scale = 0;           // a step of the result
  double a_steps = 0;         // what stands for 0 of `a`: min_a in steps of a
  std::vector<int64_t> sums;  // the result, row by row, in steps
};

Status SetSizes(const KernelContext& c, Product* p) {
  const Tensor &a = c.input(0), &b = c.input(1), &bias = c.input(2);
  p->turned_a = c.op().bool_attr("transpose_a");
  p->turned_b = c.op().bool_attr("transpose_b");
  p->rows = a.dim(p->turned_a ? 1 : 0);
  p->inner = a.dim(p->turned_a ? 0 : 1);
  p->columns = b.dim(p->turned_b ? 0 : 1);
  if (bias.rank() != 1 || bias.num_elements() != p->columns) {
    return InvalidArgument("bias must have one value a column, ", p->columns,
                           ", got shape ", bias.shape());
  }
  return OkStatus();
}

// The bias in steps.
int64_t BiasSteps(const Tensor& bias, int64_t j, double scale) {
  if (bias.dtype() == DType::kFloat) {
    const double steps = std::nearbyint(bias.data<float>()[j] / scale);
    if (std::isnan(steps)) return 0;
    return static_cast<int64_t>(
        std::clamp(steps, -kInt32Steps, kInt32Steps - 1));
  }
  return static_cast<const int32_t*>(bias.raw())[j];
}

StatusOr<Product> Multiply(const KernelContext& c) {
  Product p;
  HR_RETURN_IF_ERROR(SetSizes(c, &p));
  HR_ASSIGN_OR_RETURN(const Range a, RangeInputs(c, 3));
  HR_ASSIGN_OR_RETURN(const Range b, RangeInputs(c, 5));
  const bool first = c.op().string_attr("input_quant_mode") == "MIN_FIRST";
  const double a_scale =
      first ? (static_cast<double>(a.most) - a.least) / 255 : a.Largest() / 255;
  p.scale = a_scale * b.Largest() / 127;
  if (first) p.a_steps = std::nearbyint(a.least / a_scale);
  HR_RETURN_IF_ERROR(CheckRoomFor(p.rows * p.columns, sizeof(int64_t)));
  p.sums.resize(p.rows * p.columns);
  const auto* x = static_cast<const uint8_t*>(c.input(0).raw());
  const auto* y = static_cast<const int8_t*>(c.input(1).raw());
  ParallelFor(
      p.rows, 1.0 * p.inner * p.columns, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          for (int64_t j = 0; j < p.columns; ++j) {
            int64_t sum = 0, plain = 0;
            for (int64_t k = 0; k < p.inner; ++k) {
              const int64_t v =
                  y[p.turned_b ? j * p.inner + k : k * p.columns + j];
              sum += x[p.turned_a ? k * p.rows + i : i * p.inner + k] * v;
              plain += v;
            }
            sum += static_cast<int64_t>(p.a_steps) * plain;
            p.sums[i * p.columns + j] = sum + BiasSteps(c.input(2), j, p.scale);
          }
        }
      });
  return p;
}

template <typename T>
T Saturated(double v) {
  constexpr double kLeast = std::numeric_limits<T>::lowest();
  constexpr double kMost = std::numeric_limits<T>::max();
  return static_cast<T>(std::clamp(std::nearbyint(v), kLeast, kMost));
}

Status SetRange(KernelContext& c, float least, float most) {
  *c.out<float>(1) = least;
  *c.out<float>(2) = most;
  return OkStatus();
}

template <bool kRelu>
Status ProductInSteps(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Product p, Multiply(c));
  auto* out = static_cast<int32_t*>(c.output(0).raw());
  for (size_t i = 0; i < p.sums.size(); ++i) {
    const int64_t v = kRelu ? std::max<int64_t>(p.sums[i], 0) : p.sums[i];
    out[i] = Saturated<int32_t>(static_cast<double>(v));
  }
  const auto most = static_cast<float>(p.scale * kInt32Steps);
  return SetRange(c, -most, most);
}

template <bool kRelu>
Status ProductRequantized(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Product p, Multiply(c));
  HR_ASSIGN_OR_RETURN(const Range to, RangeInputs(c, 7));
  const bool bytes = c.output(0).dtype() == DType::kQuint8;
  const double factor = p.scale * (bytes ? 255 : 127) / to.Largest();
  for (size_t i = 0; i < p.sums.size(); ++i) {
    double v = static_cast<double>(p.sums[i]) * factor;
    if (kRelu) v = std::max(v, 0.0);
    if (bytes) {
      static_cast<uint8_t*>(c.output(0).raw())[i] = Saturated<uint8_t>(v);
    } else {
      static_cast<int8_t*>(c.output(0).raw())[i] = Saturated<int8_t>(v);
    }
  }
  return SetRange(c, to.least, to.most);
}

Status ProductAsFloat(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Product p, Multiply(c));
  HR_RETURN_IF_ERROR(RangeInputs(c, 7).status());
  for (size_t i = 0; i < p.sums.size(); ++i) {
    c.out<float>(0)[i] =
        static_cast<float>(static_cast<double>(p.sums[i]) * p.scale);
  }
  return OkStatus();
}

Status ProductRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  for (int i = 3; i < c.num_inputs(); ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 0));
  }
  const bool a = c.op().bool_attr("transpose_a");
  const bool b = c.op().bool_attr("transpose_b");
  const Shape &x = c.input(0), &y = c.input(1);
  const int64_t inner = x.known_rank() ? x[a ? 0 : 1] : -1;
  const int64_t other = y.known_rank() ? y[b ? 1 : 0] : -1;
  if (inner >= 0 && other >= 0 && inner != other) {
    return c.Refuse(DimensionsDiffer(inner, other),
                    InvalidArgument("Matrix size-incompatible: In[0]: ", x,
                                    ", In[1]: ", y));
  }
  c.set_output(0, Shape{x.known_rank() ? x[a ? 1 : 0] : -1,
                        y.known_rank() ? y[b ? 0 : 1] : -1});
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, Shape());
  return OkStatus();
}

// Binds `fn` where the operands are quint8 and qint8 and the result is one of
// `made`.
StatusOr<std::unique_ptr<Kernel>> ForBytes(const ResolvedOp& op, ComputeFn fn,
                                           std::initializer_list<DType> made) {
  const bool fits =
      op.input_types()[0] == DType::kQuint8 &&
      op.input_types()[1] == DType::kQint8 &&
      std::count(made.begin(), made.end(), op.output_types()[0]) > 0;
  return fits ? MakeKernel(fn) : nullptr;
}
template <ComputeFn F>
StatusOr<std::unique_ptr<Kernel>> InSteps(const ResolvedOp& op) {
  return ForBytes(op, F, {DType::kQint32});
}
template <ComputeFn F>
StatusOr<std::unique_ptr<Kernel>> InBytes(const ResolvedOp& op) {
  return ForBytes(op, F, {DType::kQuint8, DType::kQint8});
}

const char kQuantized[] = ": {qint8, quint8, qint32, qint16, quint16}";

// `bias`: its type; `frozen`: whether the result's range is given.
OpBuilder ProductOp(const char* name, const char* bias, bool frozen,
                    const char* made) {
  OpBuilder b(name);
  b.Input("a: T1").Input("b: T2").Input(bias);
  for (const char* range :
       {"min_a: float", "max_a: float", "min_b: float", "max_b: float"}) {
    b.Input(range);
  }
  if (frozen)
    b.Input("min_freezed_output: float").Input("max_freezed_output: float");
  b.Output("out: Toutput");
  b.Attr(absl::StrCat("T1", kQuantized).c_str());
  b.Attr(absl::StrCat("T2", kQuantized).c_str());
  if (StringView(bias) == "bias: Tbias") b.Attr("Tbias: {float, qint32}");
  b.Attr(made)
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'")
      .Doc("A product of quantized matrices, and what follows it, in one.")
      .Shape(ProductRule);
  return b;
}

const char kToSteps[] =
    "Toutput: {qint8, quint8, qint32, qint16, quint16} = DT_QINT32";
const char kToBytes[] =
    "Toutput: {qint8, quint8, qint32, qint16, quint16} = DT_QUINT8";
[[maybe_unused]] const OpRegistrar kProducts[] = {
    ProductOp("QuantizedMatMulWithBias", "bias: Tbias", false, kToSteps)
        .Output("min_out: float")
        .Output("max_out: float")
        .Cpu(InSteps<ProductInSteps<false>>),
    ProductOp("QuantizedMatMulWithBiasAndRelu", "bias: float", false, kToSteps)
        .Output("min_out: float")
        .Output("max_out: float")
        .Cpu(InSteps<ProductInSteps<true>>),
    ProductOp("QuantizedMatMulWithBiasAndRequantize", "bias: Tbias", true,
              kToBytes)
        .Output("min_out: float")
        .Output("max_out: float")
        .Cpu(InBytes<ProductRequantized<false>>),
    ProductOp("QuantizedMatMulWithBiasAndReluAndRequantize", "bias: Tbias",
              true, kToBytes)
        .Output("min_out: float")
        .Output("max_out: float")
        .Cpu(InBytes<ProductRequantized<true>>),
    ProductOp("QuantizedMatMulWithBiasAndDequantize", "bias: Tbias", true,
              "Toutput: {float}")
        .Cpu(Compute<ProductAsFloat>),
};

// --- Numbers of 32 bits, a range a channel, in one range.

Status CheckChannels(const KernelContext& c) {
  if (c.input(0).rank() != 4) {
    return InvalidArgument(c.op().name(),
                           ": input must be in NHWC format, got ",
                           c.input(0).shape());
  }
  const int64_t depth = c.input(0).dim(3);
  for (int i = 1; i < 3; ++i) {
    if (c.input(i).num_elements() != depth) {
      return InvalidArgument(
          c.op().def().inputs[i].name, " has incorrect size, was ",
          c.input(i).num_elements(), ", expected was ", depth);
    }
  }
  return OkStatus();
}

// What a step of channel `d` is worth.
double ChannelScale(const KernelContext& c, int64_t d) {
  const Range r{c.in<float>(1)[d], c.in<float>(2)[d]};
  return r.Largest() / kInt32Steps;
}

Status RangeOfChannels(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckChannels(c));
  const int64_t depth = c.input(0).dim(3), n = c.input(0).num_elements();
  const auto* in = static_cast<const int32_t*>(c.input(0).raw());
  double most = 0;
  bool negative = false;
  for (int64_t i = 0; i < n; ++i) {
    negative = negative || in[i] < 0;
    most = std::max(most, std::abs(in[i] * ChannelScale(c, i % depth)));
  }
  most =
      std::min(most, static_cast<double>(c.op().float_attr("clip_value_max")));
  *c.out<float>(0) = negative ? static_cast<float>(-most) : 0.0f;
  *c.out<float>(1) = static_cast<float>(most);
  return OkStatus();
}

Status RangeRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  return ScalarShape(c);
}

StatusOr<std::unique_ptr<Kernel>> BindRange(const ResolvedOp& op) {
  return op.type_attr("T") == DType::kQint32 ? MakeKernel(RangeOfChannels)
                                             : nullptr;
}

HR_OP(RequantizationRangePerChannel)
    .Input("input: T")
    .Input("input_min: float")
    .Input("input_max: float")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("T: {qint8, quint8, qint32, qint16, quint16} = DT_QINT32")
    .Attr("clip_value_max: float")
    .Doc("The range that numbers of all channels have.")
    .Shape(RangeRule)
    .Cpu(BindRange);

Status ChannelsInOneRange(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckChannels(c));
  HR_ASSIGN_OR_RETURN(const Range to, RangeInputs(c, 3));
  const int64_t depth = c.input(0).dim(3), n = c.input(0).num_elements();
  const bool bytes = c.output(0).dtype() == DType::kQuint8;
  const double steps = (bytes ? 255 : 127) / to.Largest();
  const auto* in = static_cast<const int32_t*>(c.input(0).raw());
  for (int64_t i = 0; i < n; ++i) {
    const double v = in[i] * ChannelScale(c, i % depth) * steps;
    if (bytes) {
      static_cast<uint8_t*>(c.output(0).raw())[i] = Saturated<uint8_t>(v);
    } else {
      static_cast<int8_t*>(c.output(0).raw())[i] = Saturated<int8_t>(v);
    }
  }
  return SetRange(c, to.least, to.most);
}

Status RequantizeRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(4), 0));
  c.set_output(0, c.input(0));
  c.set_output(1, Shape());
  c.set_output(2, Shape());
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> BindRequantize(const ResolvedOp& op) {
  const DType made = op.type_attr("out_type");
  const bool fits = op.type_attr("T") == DType::kQint32 &&
                    (made == DType::kQint8 || made == DType::kQuint8);
  return fits ? MakeKernel(ChannelsInOneRange) : nullptr;
}

HR_OP(RequantizePerChannel)
    .Input("input: T")
    .Input("input_min: float")
    .Input("input_max: float")
    .Input("requested_output_min: float")
    .Input("requested_output_max: float")
    .Output("output: out_type")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("T: {qint8, quint8, qint32, qint16, quint16} = DT_QINT32")
    .Attr("out_type: {qint8, quint8, qint32, qint16, quint16} = DT_QUINT8")
    .Doc("Numbers of a range a channel as numbers of one range.")
    .Shape(RequantizeRule)
    .Cpu(BindRequantize);

}  // namespace
}  // namespace headrace
