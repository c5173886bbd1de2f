// IsotonicRegression: the closest rows that never increase, by pooling
// neighbours that violate the order.
#include <algorithm>
#include <vector>

#include "op/op.h"

namespace headrace {
namespace {

Status IsotonicShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
  return OkStatus();
}

Status IsotonicGradShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 2));
  c.set_output(0, c.input(1));
  return OkStatus();
}

struct Pool {
  // In double, also for integers.
  double sum;
  int64_t count;
  double mean() const { return sum / static_cast<double>(count); }
};

template <typename T, typename Out>
void RunRow(const T* x, int64_t n, std::vector<Pool>& pools, Out* y,
            int32_t* segments) {
  pools.clear();
  for (int64_t i = 0; i < n; ++i) {
    pools.push_back({static_cast<double>(x[i]), 1});
    // A pool that is lowered may violate the order with the one before.
    while (pools.size() > 1) {
      const Pool last = pools.back();
      Pool& before = pools[pools.size() - 2];
      // Equal means stay apart: their pools have the same value anyway.
      if (before.mean() >= last.mean()) break;
      before.sum += last.sum;
      before.count += last.count;
      pools.pop_back();
    }
  }
  for (size_t k = 0; k < pools.size(); ++k) {
    for (int64_t i = 0; i < pools[k].count; ++i) {
      *y++ = static_cast<Out>(pools[k].mean());
      *segments++ = static_cast<int32_t>(k);
    }
  }
}

Status RunIsotonic(KernelContext& c) {
  const int64_t rows = c.input(0).dim(0), n = c.input(0).dim(1);
  std::vector<Pool> pools;
  DispatchDType(c.input(0).dtype(), RealTypes{}, [&](auto in) {
    using T = typename decltype(in)::type;
    DispatchDType(c.output(0).dtype(), FloatTypes{}, [&](auto out) {
      using Out = typename decltype(out)::type;
      for (int64_t r = 0; r < rows; ++r) {
        RunRow(c.in<T>(0) + r * n, n, pools, c.out<Out>(0) + r * n,
               c.out<int32_t>(1) + r * n);
      }
    });
  });
  return OkStatus();
}

// dy averaged over each constant part.
Status RunGrad(KernelContext& c) {
  const int64_t rows = c.input(0).dim(0), n = c.input(0).dim(1);
  if (c.input(1).shape() != c.input(0).shape()) {
    return InvalidArgument("segments ", c.input(0).shape(), " and gradients ",
                           c.input(1).shape(), " differ");
  }
  DispatchDType(c.input(1).dtype(), FloatTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r = 0; r < rows; ++r) {
      const int32_t* part = c.in<int32_t>(0) + r * n;
      for (int64_t i = 0, end = 0; i < n; i = end) {
        double sum = 0;
        for (end = i; end < n && part[end] == part[i]; ++end) {
          sum += static_cast<double>(c.in<T>(1)[r * n + end]);
        }
        const auto mean = static_cast<T>(sum / static_cast<double>(end - i));
        std::fill(c.out<T>(0) + r * n + i, c.out<T>(0) + r * n + end, mean);
      }
    }
  });
  return OkStatus();
}

Status IsotonicGradient(GradientContext& g) {
  Value dy = g("_IsotonicRegressionGrad", {g.output(1), g.grad()});
  const DType to = g.op().input_types()[0];
  // Integers come in and floats go out; the gradient has the input's type.
  if (to != g.op().output_types()[0]) dy = g("Cast", {dy}, {{"DstT", to}});
  g.set(0, dy);
  return g.status();
}

Status GradGradient(GradientContext& g) {
  g.set(1, g("_IsotonicRegressionGrad", {g.input(0), g.grad()}));
  return g.status();
}

HR_OP(_IsotonicRegressionGrad)
    .Input("segments: int32")
    .Input("gradient: T")
    .Output("output: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Doc("A gradient averaged over the constant parts of a regression.")
    .Shape(IsotonicGradShape)
    .Gradient(GradGradient)
    .GradientSkips({1}, {0})
    .Cpu(Compute<RunGrad>);

HR_OP(IsotonicRegression)
    .Input("input: T")
    .Output("output: output_dtype")
    .Output("segments: int32")
    .Attr("T: realnumbertype")
    .Attr("output_dtype: {half, bfloat16, float, double} = DT_FLOAT")
    .Doc("The closest rows that never increase, and their constant parts.")
    .Shape(IsotonicShape)
    .Gradient(IsotonicGradient)
    .GradientSkips({0}, {0})
    .Cpu(Compute<RunIsotonic>);

}  // namespace
}  // namespace headrace
