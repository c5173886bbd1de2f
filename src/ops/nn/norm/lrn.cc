// LRN: local response normalisation over neighbouring channels, and LRNGrad.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/math/loops/loops.h"

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
    // Added anew for each window: a running sum would gather rounding errors.
    auto squares = [x](int64_t begin, int64_t end) {
      float sum = 0;
      for (int64_t j = begin; j < end; ++j) sum += x[j] * x[j];
      return sum;
    };
    if (radius >= channels - 1) {  // all are neighbours of all
      std::fill_n(norm, channels, bias + alpha * squares(0, channels));
      return;
    }
    for (int64_t c = 0; c < channels; ++c) {
      norm[c] = bias + alpha * squares(std::max<int64_t>(c - radius, 0),
                                       std::min(c + radius + 1, channels));
    }
  }

  // v[i] = v[i] to the power of -beta.
  void Powers(float* v, int64_t n) const {
    // The usual power, as a root.
    if (beta == 0.5f) {
      for (int64_t i = 0; i < n; ++i) v[i] = 1 / std::sqrt(v[i]);
      return;
    }
    // v^-beta = exp(-beta log v); loops of vectors.
    static const UnaryLoop log = FindUnaryLoop("Log", 1)->unary;
    static const UnaryLoop exp = FindUnaryLoop("Exp", 1)->unary;
    log(v, v, n);
    for (int64_t i = 0; i < n; ++i) v[i] *= -beta;
    exp(v, v, n);
  }
};

Status LrnShape(ShapeContext& c) {
  Shape s = Shape::UnknownRank();
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 4) {
      return c.Refuse(RankIsNot(4, c.input(i).rank()),
                      InvalidArgument("in must be 4-dimensional"));
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

// Calls f(some rows of each input in float, output rows in float, their count)
// for all pixels.
template <typename T, int kInputs, typename F>
void ForPixels(KernelContext& c, F f) {
  const int64_t channels = c.output(0).dim(3);
  const int64_t rows = channels ? c.output(0).num_elements() / channels : 0;
  // Rows until tiles fill a first cache.
  const int64_t most =
      std::max<int64_t>(2048 / std::max<int64_t>(channels, 1), 1);
  ParallelFor(rows, channels * 5.0, [&](int64_t begin, int64_t end) {
    std::vector<float> in[kInputs], out(most * channels);
    for (auto& v : in) v.resize(most * channels);
    for (int64_t r = begin; r < end; r += most) {
      const int64_t here = std::min(most, end - r), n = here * channels;
      const float* from[kInputs];
      for (int i = 0; i < kInputs; ++i) {
        const T* rows_in = c.in<T>(i) + r * channels;
        if constexpr (std::is_same_v<T, float>) {
          from[i] = rows_in;
        } else {
          std::copy_n(rows_in, n, in[i].data());
          from[i] = in[i].data();
        }
      }
      f(from, out.data(), here, channels);
      for (int64_t k = 0; k < n; ++k) {
        c.out<T>(0)[r * channels + k] = static_cast<T>(out[k]);
      }
    }
  });
}

template <typename T>
Status RunLrn(KernelContext& c) {
  const Lrn lrn(c.op());
  ForPixels<T, 1>(c, [&](auto& in, float* y, int64_t rows, int64_t channels) {
    for (int64_t r = 0; r < rows; ++r) {
      lrn.Norms(in[0] + r * channels, channels, y + r * channels);
    }
    lrn.Powers(y, rows * channels);
    for (int64_t k = 0; k < rows * channels; ++k) y[k] *= in[0][k];
  });
  return OkStatus();
}

template <typename T>
Status RunLrnGrad(KernelContext& c) {
  const Lrn lrn(c.op());
  ForPixels<T, 3>(c, [&](auto& in, float* dx, int64_t rows, int64_t channels) {
    const int64_t n = rows * channels;
    std::vector<float> norm(n), ratio(n);
    for (int64_t r = 0; r < rows; ++r) {
      lrn.Norms(in[1] + r * channels, channels, norm.data() + r * channels);
    }
    const float *d = in[0], *x = in[1], *y = in[2];
    for (int64_t k = 0; k < n; ++k) ratio[k] = d[k] * y[k] / norm[k];
    lrn.Powers(norm.data(), n);
    for (int64_t r = 0; r < n; r += channels) {
      for (int64_t k = 0; k < channels; ++k) {
        float sum = 0;
        const int64_t end = std::min(k + lrn.radius + 1, channels);
        for (int64_t j = std::max<int64_t>(k - lrn.radius, 0); j < end; ++j) {
          sum += ratio[r + j];
        }
        // The derivative by way of the neighbours' norms.
        dx[r + k] =
            d[r + k] * norm[r + k] - 2 * lrn.alpha * lrn.beta * x[r + k] * sum;
      }
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
