// Ops that fail when a tensor holds numbers that are none.
#include <atomic>
#include <cmath>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

enum : uint32_t { kNan = 1, kPlusInf = 2, kMinusInf = 4 };

// What of these is among the elements.
template <typename T>
uint32_t Find(const T* x, int64_t n) {
  // Anything not finite shows in the sum of zeros times elements.
  // Eight sums: one would wait for itself at each addition, and eight make a
  // vector.
  float sum[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) {
      // x - x is 0 for finite numbers, and NaN for the rest: no branches in the
      // loop, which runs at memory's pace.
      sum[k] += 0.0f * static_cast<float>(x[i + k] - x[i + k]);
    }
  }
  // The rest that makes no eight is looked at one by one.
  bool suspect = i < n;
  for (float s : sum) suspect |= !(s == 0);
  if (!suspect) return 0;
  uint32_t found = 0;
  // Rarely: for tensors that fail, or whose size is no multiple of eight.
  for (i = 0; i < n; ++i) {
    const ComputeType<T> v = x[i];
    if (std::isnan(v)) found |= kNan;
    if (std::isinf(v)) found |= v > 0 ? kPlusInf : kMinusInf;
  }
  return found;
}

StatusOr<uint32_t> FindIn(const Tensor& t) {
  std::atomic<uint32_t> found = 0;
  const bool known = DispatchDType(t.dtype(), FloatTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = t.data<T>();
    ParallelFor(t.num_elements(), 0.4, [&](int64_t b, int64_t e) {
      // Bits of all threads together: which numbers are told must not depend on
      // who came first.
      if (uint32_t f = Find(x + b, e - b)) found.fetch_or(f);
    });
  });
  if (!known) return Internal("CheckNumerics: not a floating-point type");
  return found.load();
}

Status Check(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(uint32_t found, FindIn(c.input(0)));
  c.set_output(0, c.input(0));
  if (found == 0) return OkStatus();
  const bool nan = found & kNan, inf = found & (kPlusInf | kMinusInf);
  return InvalidArgument(c.op().string_attr("message"), " : Tensor had ",
                         inf && nan ? "Inf and NaN"
                         : inf      ? "Inf"
                                    : "NaN",
                         " values");
}

Status CheckV2(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(uint32_t found, FindIn(c.input(0)));
  c.set_output(0, c.input(0));
  if (found == 0) return OkStatus();
  absl::InlinedVector<StringView, 3> kinds;
  if (found & kMinusInf) kinds.push_back("-Inf");
  if (found & kPlusInf) kinds.push_back("+Inf");
  if (found & kNan) kinds.push_back("NaN");
  // In upstream's order: -Inf, +Inf, NaN.
  std::string text(kinds[0]);
  if (kinds.size() == 2) absl::StrAppend(&text, " and ", kinds[1]);
  if (kinds.size() == 3) {
    absl::StrAppend(&text, ", ", kinds[1], ", and ", kinds[2]);
  }
  return InvalidArgument(c.op().string_attr("message"), " : Tensor had ", text,
                         " values");
}

// The gradient is looked at as well.
Status CheckGrad(GradientContext& g) {
  const std::string text = absl::StrCat(
      "Not a number (NaN) or infinity (Inf) values detected in "
      "gradient. ",
      g.op().string_attr("message"));
  g.set(0, g(g.op().name(), {g.grad()}, {{"message", text}}));
  return g.status();
}

OpBuilder CheckNumericsOp(const char* name, const char* doc,
                          KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("tensor: T")
      .Output("output: T")
      .Attr(kFloatTypes)
      .Attr("message: string")
      .Doc(doc)
      .Stateful()
      .Shape(UnchangedShape)
      .Vectorize(VectorizeBroadcast)
      .Gradient(CheckGrad)
      .GradientSkips({0}, {0})
      .View()
      .Cpu(kernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kCheckNumerics[] = {
    CheckNumericsOp("CheckNumerics",
                    "The input; an error where it has a NaN or an infinity.",
                    ComputeOwn<Check>),
    CheckNumericsOp("CheckNumericsV2",
                    "The input; an error that tells NaN, +Inf and -Inf apart.",
                    ComputeOwn<CheckV2>),
};

}  // namespace
}  // namespace headrace
