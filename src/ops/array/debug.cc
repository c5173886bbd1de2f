// What the debugger of TensorFlow puts into graphs: DebugIdentity,
// DebugNanCount, DebugNumericSummary and their like. Tensors are looked at, and
// not published.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "op/vectorize.h"
#include "ops/array/forward_input.h"
#include "tensor/dtype_proto.h"

namespace headrace {
namespace {

Status CheckUrls(const ResolvedOp& op) {
  if (op.attr<std::vector<std::string>>("debug_urls").empty())
    return OkStatus();
  return Unimplemented(op.name(), ": debug_urls: tensors are published to no ",
                       "debugger; leave it empty");
}

// "NODE:SLOT"
Status CheckWatched(const ResolvedOp& op) {
  HR_RETURN_IF_ERROR(CheckUrls(op));
  const std::string& name = op.string_attr("tensor_name");
  const std::vector<StringView> parts = absl::StrSplit(name, ':');
  int32_t slot = 0;
  if (parts.size() == 2 && !parts[0].empty() &&
      absl::SimpleAtoi(parts[1], &slot) && slot >= 0) {
    return OkStatus();
  }
  return InvalidArgument("Failed to parse tensor name: \"", name, "\"");
}

Status WatchedIdentity(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckWatched(c.op()));
  return ForwardInput(c);
}

Status UnnamedIdentity(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckUrls(c.op()));
  return ForwardInput(c);
}

const char kUrls[] = "debug_urls: list(string) = []";
const char kGated[] = "gated_grpc: bool = false";

OpBuilder WatchOp(const char* name) {
  OpBuilder b(name);
  b.Input("input: T").Output("output: T").Attr("T: type");
  b.Doc("Returns the input; a point to look at it.").Shape(SameShapes).View();
  return b;
}

Status HandGradientOn(GradientContext& g) {
  g.set(0, g.raw_grad(0));
  return g.status();
}

[[maybe_unused]] const OpRegistrar kWatchOps[] = {
    WatchOp("DebugIdentity")
        .Attr("device_name: string = ''")
        .Attr("tensor_name: string = ''")
        .Attr(kUrls)
        .Attr(kGated)
        .AllowsUninitialized()
        .Cpu(ComputeOwn<WatchedIdentity>),
    WatchOp("DebugIdentityV2")
        .Attr("tfdbg_context_id: string = ''")
        .Attr("op_name: string = ''")
        .Attr("output_slot: int = -1")
        .Attr("tensor_debug_mode: int = -1")
        .Attr(kUrls)
        .Attr("circular_buffer_size: int = 1000")
        .Attr("tfdbg_run_id: string = ''")
        .Stateful()
        .Gradient(HandGradientOn)
        .GradientSkips({0}, {0})
        .Cpu(ComputeOwn<UnnamedIdentity>),
    WatchOp("DebugIdentityV3")
        .Attr("device_name: string = ''")
        .Attr("tensor_name: string = ''")
        .Attr("io_of_node: string = ''")
        .Attr("is_input: bool = false")
        .Attr("io_index: int = -1")
        .Attr(kUrls)
        .Attr(kGated)
        .Stateful()
        .AllowsUninitialized()
        .Cpu(ComputeOwn<WatchedIdentity>),
    WatchOp("DebugGradientIdentity")
        .AllowsUninitialized()
        .Gradient(HandGradientOn)
        .GradientSkips({0}, {0})
        .Cpu(ComputeOwn<ForwardInput>),
};

HR_OP(DebugGradientRefIdentity)
    .Input("input: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .Traits({OpTrait::kHandsReferenceOn})
    .AllowsUninitialized()
    .Doc("Returns the reference; a point to look at gradients.")
    .Shape(SameShapes)
    .Gradient(HandGradientOn)
    .GradientSkips({0}, {0})
    .View()
    .Cpu(ComputeOwn<ForwardInput>);

using WatchedTypes =
    TypeList<float, double, half, bfloat16, int8_t, uint8_t, int16_t, uint16_t,
             int32_t, int64_t, uint32_t, uint64_t, bool>;

// Calls f(x) for each element as a double; false for dtypes without numbers.
template <typename F>
bool ForNumbers(const Tensor& t, F&& f) {
  return DispatchDType(t.dtype(), WatchedTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& x : t.span<T>()) f(static_cast<double>(x));
  });
}

StatusOr<std::unique_ptr<Kernel>> ForWatched(const ResolvedOp& op,
                                             ComputeFn fn) {
  const bool known =
      DispatchDType(op.type_attr("T"), WatchedTypes{}, [](auto) {});
  return known ? MakeKernel(fn, true) : nullptr;
}

Status CountNans(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckWatched(c.op()));
  int64_t count = 0;
  ForNumbers(c.input(0), [&](double x) { count += std::isnan(x) ? 1 : 0; });
  c.set_output(0, Tensor::Vector<int64_t>({count}));
  return OkStatus();
}
StatusOr<std::unique_ptr<Kernel>> BindNanCount(const ResolvedOp& op) {
  return ForWatched(op, CountNans);
}

Status OneNumber(ShapeContext& c) {
  c.set_output(0, Shape{1});
  return OkStatus();
}

HR_OP(DebugNanCount)
    .Input("input: T")
    .Output("output: int64")
    .Attr("T: type")
    .Attr("device_name: string = ''")
    .Attr("tensor_name: string = ''")
    .Attr(kUrls)
    .Attr(kGated)
    .AllowsUninitialized()
    .Doc("How many elements are no numbers.")
    .Shape(OneNumber)
    .Cpu(BindNanCount);

// What is counted, and the moments of finite elements.
struct Numbers {
  double nan = 0, low = 0, negative = 0, zero = 0, positive = 0, high = 0;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  double mean = std::numeric_limits<double>::quiet_NaN(), variance = mean;
};

Numbers CountNumbers(const Tensor& t, double lower, double upper) {
  Numbers n;
  double sum = 0, finite = 0;
  ForNumbers(t, [&](double x) {
    if (std::isfinite(x)) {
      n.least = std::min(n.least, x);
      n.most = std::max(n.most, x);
      sum += x;
      ++finite;
    }
    if (std::isnan(x)) {
      ++n.nan;
    } else if (x <= lower) {
      ++n.low;
    } else if (x >= upper) {
      ++n.high;
    } else if (x < 0) {
      ++n.negative;
    } else if (x > 0) {
      ++n.positive;
    } else {
      ++n.zero;
    }
  });
  if (finite == 0) return n;
  n.mean = sum / finite;
  double squares = 0;
  ForNumbers(t, [&](double x) {
    if (std::isfinite(x)) squares += (x - n.mean) * (x - n.mean);
  });
  n.variance = squares / finite;
  return n;
}

Status NumericSummary(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_RETURN_IF_ERROR(CheckWatched(op));
  const Tensor& t = c.input(0);
  const Numbers n = CountNumbers(t, op.float_attr("lower_bound"),
                                 op.float_attr("upper_bound"));
  std::vector<double> out = {1,  // has a value
                             static_cast<double>(t.num_elements()),
                             n.nan,
                             n.low,
                             n.negative,
                             n.zero,
                             n.positive,
                             n.high,
                             n.least,
                             n.most,
                             n.mean,
                             n.variance,
                             static_cast<double>(TypeToProto(t.dtype())),
                             static_cast<double>(t.rank())};
  for (const int64_t d : t.shape().dims())
    out.push_back(static_cast<double>(d));
  c.set_output(0, Tensor::Vector<double>(out));
  return OkStatus();
}
StatusOr<std::unique_ptr<Kernel>> BindNumericSummary(const ResolvedOp& op) {
  return ForWatched(op, NumericSummary);
}

HR_OP(DebugNumericSummary)
    .Input("input: T")
    .Output("output: double")
    .Attr("T: type")
    .Attr("device_name: string = ''")
    .Attr("tensor_name: string = ''")
    .Attr(kUrls)
    .Attr("lower_bound: float = -inf")
    .Attr("upper_bound: float = inf")
    .Attr("mute_if_healthy: bool = false")
    .Attr(kGated)
    .AllowsUninitialized()
    .Doc("Counts, moments, dtype and shape of a tensor, as numbers.")
    .Shape(UnknownShape)
    .Cpu(BindNumericSummary);

// --- DebugNumericSummaryV2: a vector whose make the mode says.

enum DebugMode : int64_t {
  kCurtHealth = 2,
  kConciseHealth = 3,
  kFullHealth = 4,
  kShapeAlone = 5,
  kReduceInfNan = 8,
};

std::vector<double> ShapeNumbers(const Tensor& t, double id) {
  constexpr int kSizes = 6;  // the last ones, with zeros behind them
  std::vector<double> out = {id, static_cast<double>(TypeToProto(t.dtype())),
                             static_cast<double>(t.rank()),
                             static_cast<double>(t.num_elements())};
  for (int d = std::max(0, t.rank() - kSizes); d < t.rank(); ++d) {
    out.push_back(static_cast<double>(t.dim(d)));
  }
  out.resize(4 + kSizes);
  return out;
}

StatusOr<std::vector<double>> ModeNumbers(const ResolvedOp& op,
                                          const Tensor& t) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto id = static_cast<double>(op.int_attr("tensor_id"));
  const auto size = static_cast<double>(t.num_elements());
  const Numbers n = CountNumbers(t, -kInf, kInf);
  switch (op.int_attr("tensor_debug_mode")) {
    case kCurtHealth:
      return std::vector<double>{id, n.nan + n.low + n.high > 0 ? 1.0 : 0.0};
    case kConciseHealth:
      return std::vector<double>{id, size, n.low, n.high, n.nan};
    case kFullHealth:
      // (-1: the device, which is not told.)
      return std::vector<double>{id,
                                 -1,
                                 static_cast<double>(TypeToProto(t.dtype())),
                                 static_cast<double>(t.rank()),
                                 size,
                                 n.low,
                                 n.high,
                                 n.nan,
                                 n.negative,
                                 n.zero,
                                 n.positive};
    case kShapeAlone:
      return ShapeNumbers(t, id);
    case kReduceInfNan:
      return std::vector<double>{n.low > 0 ? -kInf : 0, n.high > 0 ? kInf : 0,
                                 n.nan > 0 ? std::nan("") : 0};
    default:
      return Unimplemented("Unimplemented tensor debug mode: ",
                           op.int_attr("tensor_debug_mode"));
  }
}

Status NumericSummaryV2(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const auto numbers, ModeNumbers(c.op(), c.input(0)));
  const Shape shape{static_cast<int64_t>(numbers.size())};
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (c.output(0).dtype() == DType::kFloat) {
      c.out<float>(0)[i] = static_cast<float>(numbers[i]);
    } else {
      c.out<double>(0)[i] = numbers[i];
    }
  }
  return OkStatus();
}
StatusOr<std::unique_ptr<Kernel>> BindNumericSummaryV2(const ResolvedOp& op) {
  return ForWatched(op, NumericSummaryV2);
}

HR_OP(DebugNumericSummaryV2)
    .Input("input: T")
    .Output("output: output_dtype")
    .Attr("output_dtype: {float, double} = DT_FLOAT")
    .Attr("T: type")
    .Attr("tensor_debug_mode: int = -1")
    .Attr("tensor_id: int = -1")
    .Doc("What `tensor_debug_mode` asks of a tensor, as numbers.")
    .Shape(UnknownShape)
    .Cpu(BindNumericSummaryV2);

}  // namespace
}  // namespace headrace
