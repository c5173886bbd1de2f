// LRN: local response normalisation over neighbouring channels, and LRNGrad.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

struct Lrn {
  int64_t radius;
  float bias, alpha, beta;
  explicit Lrn(const ResolvedOp& op)
      : radius(op.int_attr("depth_radius")),
        bias(op.float_attr("bias")),
        alpha(op.float_attr("alpha")),
        beta(op.float_attr("beta")) {}

  // norm[c] = bias + alpha * sum of squares of c's neighbours.
  void Norms(const float* x, int64_t channels, float* norm) const {
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      const int64_t end = std::min(c + radius + 1, channels);
      for (int64_t j = std::max<int64_t>(c - radius, 0); j < end; ++j) {
        sum += x[j] * x[j];
      }
      norm[c] = bias + alpha * sum;
    }
  }
};

Status LrnShape(ShapeContext& c) {
  Shape s = Shape::UnknownRank();
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 4) {
      return InvalidArgument("in must be 4-dimensional");
    }
    HR_ASSIGN_OR_RETURN(s, MergeShapes(s, c.input(i)));
  }
  if (c.op().int_attr("depth_radius") < 0 ||
      c.op().int_attr("depth_radius") > 1 << 30) {
    return InvalidArgument("depth_radius must be non-negative and fit int");
  }
  c.set_output(0, std::move(s));
  return OkStatus();
}

// Calls f(row of each input in float, output row in float) for each pixel.
template <typename T, int kInputs, typename F>
void ForPixels(KernelContext& c, F f) {
  const int64_t channels = c.output(0).dim(3);
  const int64_t rows = channels ? c.output(0).num_elements() / channels : 0;
  ParallelFor(rows, channels * 30.0, [&](int64_t begin, int64_t end) {
    std::vector<float> in[kInputs], out(channels);
    for (auto& v : in) v.resize(channels);
    for (int64_t r = begin; r < end; ++r) {
      for (int i = 0; i < kInputs; ++i) {
        std::copy_n(c.in<T>(i) + r * channels, channels, in[i].data());
      }
      f(in, out.data(), channels);
      for (int64_t k = 0; k < channels; ++k) {
        c.out<T>(0)[r * channels + k] = static_cast<T>(out[k]);
      }
    }
  });
}

template <typename T>
Status RunLrn(KernelContext& c) {
  const Lrn lrn(c.op());
  ForPixels<T, 1>(c, [&](auto& in, float* y, int64_t channels) {
    lrn.Norms(in[0].data(), channels, y);
    for (int64_t k = 0; k < channels; ++k) {
      y[k] = in[0][k] * std::pow(y[k], -lrn.beta);
    }
  });
  return OkStatus();
}

template <typename T>
Status RunLrnGrad(KernelContext& c) {
  const Lrn lrn(c.op());
  ForPixels<T, 3>(c, [&](auto& in, float* dx, int64_t channels) {
    const auto &d = in[0], &x = in[1], &y = in[2];
    std::vector<float> norm(channels);
    lrn.Norms(x.data(), channels, norm.data());
    for (int64_t k = 0; k < channels; ++k) {
      float sum = 0;
      const int64_t end = std::min(k + lrn.radius + 1, channels);
      for (int64_t j = std::max<int64_t>(k - lrn.radius, 0); j < end; ++j) {
        sum += d[j] * y[j] / norm[j];
      }
      dx[k] = d[k] * std::pow(norm[k], -lrn.beta) -
              2 * lrn.alpha * lrn.beta * x[k] * sum;
    }
  });
  return OkStatus();
}

template <bool kGrad>
ComputeFn PickNorm(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), TypeList<float, half, bfloat16>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  fn = kGrad ? RunLrnGrad<T> : RunLrn<T>;
                });
  return fn;
}

Status LrnGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  AttrMap attrs = g.op().attrs();
  attrs.Erase("T");
  g.set(0, g("LRNGrad", {d, g.input(0), g.output(0)}, attrs));
  return g.status();
}

HR_OP(LRN)
    .Input("input: T")
    .Output("output: T")
    .Attr("depth_radius: int = 5")
    .Attr("bias: float = 1.0")
    .Attr("alpha: float = 1.0")
    .Attr("beta: float = 0.5")
    .Attr("T: {half, bfloat16, float} = float")
    .Doc("Divides each element by a power of its neighbours' squares.")
    .Shape(LrnShape)
    .Gradient(LrnGradient)
    .Cpu(ComputeFor<PickNorm<false>>);

HR_OP(LRNGrad)
    .Input("input_grads: T")
    .Input("input_image: T")
    .Input("output_image: T")
    .Output("output: T")
    .Attr("depth_radius: int = 5")
    .Attr("bias: float = 1.0")
    .Attr("alpha: float = 1.0")
    .Attr("beta: float = 0.5")
    .Attr("T: {half, bfloat16, float} = float")
    .Doc("Gradient of LRN.")
    .Shape(LrnShape)
    .Cpu(ComputeFor<PickNorm<true>>);

}  // namespace
}  // namespace headrace
