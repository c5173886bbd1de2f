// UniformQuantizedConvolution, and UniformQuantizedConvolutionHybrid, whose
// images are floats.
#include <algorithm>

#include "base/thread_pool.h"
#include "ops/math/quantize/quantized.h"
#include "ops/math/quantize/uniform.h"
#include "ops/nn/conv/uniform_geometry.h"

namespace headrace {
namespace {

// The axis of the filter whose entries may have scales of their own.
Status CheckFilterAxis(const ResolvedOp& op, const UniformGeometry& g) {
  const int64_t axis = op.int_attr("rhs_quantization_axis");
  if (axis == -1 || axis == g.rhs_out) return OkStatus();
  return InvalidArgument(
      "rhs_quantization_axis Attr must be -1 (per-tensor) or "
      "dimension_numbers.kernel_output_feature_dimension (per-channel).");
}

Status CheckMadeAxis(const ResolvedOp& op, const UniformGeometry& g,
                     const Shape& scales) {
  const int64_t axis = op.int_attr("output_quantization_axis");
  if (axis == -1) return OkStatus();
  if (op.int_attr("rhs_quantization_axis") == -1) {
    return InvalidArgument(
        "If rhs is per-tensor quantized, output must be also per-tensor "
        "quantized. Given output scales/zero_points of rank ",
        scales.known_rank() ? scales.rank() : 1);
  }
  if (axis == g.out_feature) return OkStatus();
  return InvalidArgument(
      "output_quantization_axis Attr must be -1 (per-tensor) or "
      "dimension_numbers.output_feature_dimension (per-channel).");
}

template <bool kHybrid>
Status UniformConvShape(ShapeContext& c) {
  const ResolvedOp& op = c.op();
  const Shape &lhs = c.input(0), &rhs = c.input(1);
  if (!kHybrid && op.int_attr("lhs_quantization_axis") != -1) {
    return InvalidArgument("lhs_quantization_axis Attr must be -1 ",
                           "(per-tensor).");
  }
  if (!lhs.known_rank() || !rhs.known_rank()) return OkStatus();
  HR_ASSIGN_OR_RETURN(UniformGeometry g, UniformGeometry::Make(op, lhs, rhs));
  HR_RETURN_IF_ERROR(CheckFilterAxis(op, g));
  HR_RETURN_IF_ERROR(CheckUniform(c, "rhs_", rhs, kHybrid ? 2 : 4));
  if (!kHybrid) {
    HR_RETURN_IF_ERROR(CheckUniform(c, "lhs_", lhs, 2));
    HR_RETURN_IF_ERROR(CheckMadeAxis(op, g, c.input(6)));
    HR_RETURN_IF_ERROR(CheckUniform(c, "output_", g.made, 6));
  }
  c.set_output(0, std::move(g.made));
  return OkStatus();
}

// Sums of products of int32, which wrap. `lhs` and `rhs` are less their zero
// points, so what padding and dilation put between adds nothing.
class UniformSums {
 public:
  UniformSums(const UniformGeometry& g, const Tensor& lhs, const Tensor& rhs)
      : g_(g),
        lhs_(lhs.data<int32_t>()),
        rhs_(rhs.data<int32_t>()),
        lhs_steps_(StepsOf(lhs.shape())),
        rhs_steps_(StepsOf(rhs.shape())),
        out_steps_(StepsOf(g.made)),
        features_(rhs.dim(g.rhs_in)),
        batch_(g.made[g.out_batch]),
        channels_(g.made[g.out_feature]) {}

  int64_t BatchOf(int64_t i) const { return At(i, g_.out_batch); }
  int64_t ChannelOf(int64_t i) const { return At(i, g_.out_feature); }
  // The batch entry of lhs that element `i` of the result is made of.
  int64_t SourceOf(int64_t i) const {
    const int64_t group = ChannelOf(i) / (channels_ / g_.batch_groups);
    return group * batch_ + BatchOf(i);
  }

  int32_t operator()(int64_t i) const {
    const int64_t channel = ChannelOf(i);
    const int64_t group = channel / (channels_ / g_.feature_groups);
    const int64_t from = SourceOf(i) * lhs_steps_[g_.lhs_batch] +
                         group * features_ * lhs_steps_[g_.lhs_feature];
    uint32_t sum = 0;
    Add(0, i, from, channel * rhs_steps_[g_.rhs_out], &sum);
    return static_cast<int32_t>(sum);
  }

 private:
  int64_t At(int64_t i, int dim) const {
    return i / out_steps_[dim] % g_.made[dim];
  }
  // The sum over the spatial dimensions from `axis` on.
  void Add(size_t axis, int64_t i, int64_t from, int64_t tap,
           uint32_t* sum) const {
    if (axis == g_.axes.size()) {
      for (int64_t f = 0; f < features_; ++f) {
        *sum +=
            static_cast<uint32_t>(lhs_[from + f * lhs_steps_[g_.lhs_feature]]) *
            static_cast<uint32_t>(rhs_[tap + f * rhs_steps_[g_.rhs_in]]);
      }
      return;
    }
    const UniformGeometry::Axis& a = g_.axes[axis];
    const int64_t begin = At(i, a.out) * a.stride - a.before;
    for (int64_t k = 0; k < a.size; ++k) {
      const int64_t at = begin + k * a.rhs_dilation;
      if (at < 0 || at % a.lhs_dilation != 0 || at / a.lhs_dilation >= a.in) {
        continue;
      }
      Add(axis + 1, i, from + at / a.lhs_dilation * lhs_steps_[a.lhs],
          tap + k * rhs_steps_[a.rhs], sum);
    }
  }

  const UniformGeometry& g_;
  const int32_t *lhs_, *rhs_;
  const std::vector<int64_t> lhs_steps_, rhs_steps_, out_steps_;
  const int64_t features_, batch_, channels_;
};

double CostOfSum(const UniformGeometry& g, const Shape& rhs) {
  double cost = 4.0 + static_cast<double>(rhs[g.rhs_in]);
  for (const UniformGeometry::Axis& a : g.axes) {
    cost *= static_cast<double>(a.size);
  }
  return cost;
}

StatusOr<Tensor> WithoutZeros(const KernelContext& c, int i,
                              const UniformParams& p) {
  const Tensor& x = c.input(i);
  HR_ASSIGN_OR_RETURN(Tensor made, c.Temporary(DType::kInt32, x.shape()));
  const int8_t* q = LevelsIn<int8_t>(c, i);
  for (int64_t e = 0; e < x.num_elements(); ++e) {
    // Wraps: zero points may be any number.
    made.data<int32_t>()[e] =
        static_cast<int32_t>(static_cast<uint32_t>(q[e]) -
                             static_cast<uint32_t>(p.zero(p.ChannelOf(e))));
  }
  return made;
}

Status UniformConv(KernelContext& c) {
  const Shape &lhs = c.input(0).shape(), &rhs = c.input(1).shape();
  HR_ASSIGN_OR_RETURN(const UniformGeometry g,
                      UniformGeometry::Make(c.op(), lhs, rhs));
  HR_RETURN_IF_ERROR(CheckScales(c, "lhs", 2));
  HR_RETURN_IF_ERROR(CheckScales(c, "rhs", 4));
  HR_RETURN_IF_ERROR(CheckScales(c, "output", 6));
  if (c.output(0).num_elements() == 0) return OkStatus();
  const UniformParams x(c, "lhs_", lhs, 2), filter(c, "rhs_", rhs, 4),
      to(c, "output_", g.made, 6);
  const UniformBounds<int32_t> bounds(c.op(), "output_");
  HR_ASSIGN_OR_RETURN(const Tensor a, WithoutZeros(c, 0, x));
  HR_ASSIGN_OR_RETURN(const Tensor b, WithoutZeros(c, 1, filter));
  std::vector<FixedFactor> factors;
  for (int64_t k = 0; k < g.made[g.out_feature]; ++k) {
    HR_ASSIGN_OR_RETURN(FixedFactor f,
                        FixedFactor::Make(static_cast<double>(x.scale(0)) *
                                          filter.scale_of(k) / to.scale_of(k)));
    factors.push_back(f);
  }
  const UniformSums sums(g, a, b);
  int32_t* out = LevelsOut<int32_t>(c, 0);
  ParallelFor(c.output(0).num_elements(), CostOfSum(g, rhs),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t k = sums.ChannelOf(i);
                  out[i] =
                      bounds.Cut(int64_t{factors[k](sums(i))} + to.zero_of(k));
                }
              });
  return OkStatus();
}

// Each image gets levels of its own range.
Status HybridConv(KernelContext& c) {
  const Tensor& images = c.input(0);
  const Shape& rhs = c.input(1).shape();
  HR_ASSIGN_OR_RETURN(const UniformGeometry g,
                      UniformGeometry::Make(c.op(), images.shape(), rhs));
  HR_RETURN_IF_ERROR(CheckScales(c, "rhs", 2));
  if (c.output(0).num_elements() == 0) return OkStatus();
  const UniformParams filter(c, "rhs_", rhs, 2);
  HR_ASSIGN_OR_RETURN(const Tensor b, WithoutZeros(c, 1, filter));
  HR_ASSIGN_OR_RETURN(const Tensor a,
                      c.Temporary(DType::kInt32, images.shape()));
  const int64_t batch = images.dim(g.lhs_batch);
  const int64_t step = StepsOf(images.shape())[g.lhs_batch];
  std::vector<float> scales;
  std::vector<float> image;
  std::vector<int64_t> places;
  for (int64_t n = 0; n < batch; ++n) {
    image.clear();
    places.clear();
    // The image's stretches, of `step` elements each.
    for (int64_t i = n * step; i < images.num_elements(); i += step * batch) {
      for (int64_t k = i; k < i + step; ++k) {
        image.push_back(images.data<float>()[k]);
        places.push_back(k);
      }
    }
    const OwnLevels own(image.data(), static_cast<int64_t>(image.size()));
    for (size_t i = 0; i < image.size(); ++i) {
      a.data<int32_t>()[places[i]] = own(image[i]);
    }
    scales.push_back(own.scale());
  }
  const UniformSums sums(g, a, b);
  float* out = c.out<float>(0);
  ParallelFor(c.output(0).num_elements(), CostOfSum(g, rhs),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const float unit = scales[sums.SourceOf(i)] *
                                     filter.scale_of(sums.ChannelOf(i));
                  out[i] = static_cast<float>(sums(i)) * unit;
                }
              });
  return OkStatus();
}

void WindowAttributes(OpBuilder& b) {
  b.Attr("window_strides: list(int) = []")
      .Attr("padding: string")
      .Attr("explicit_padding: list(int) = []")
      .Attr("lhs_dilation: list(int) = []")
      .Attr("rhs_dilation: list(int) = []")
      .Attr("batch_group_count: int = 1")
      .Attr("feature_group_count: int = 1")
      .Attr("dimension_numbers: string = ''");
}

void LevelAttributes(OpBuilder& b, const std::string& of) {
  b.Attr((of + "_quantization_axis: int = -1").c_str())
      .Attr((of + "_quantization_min_val: int").c_str())
      .Attr((of + "_quantization_max_val: int").c_str());
}

OpBuilder UniformConvOp() {
  OpBuilder b("UniformQuantizedConvolution");
  b.Input("lhs: Tin")
      .Input("rhs: Tin")
      .Input("lhs_scales: float")
      .Input("lhs_zero_points: int32")
      .Input("rhs_scales: float")
      .Input("rhs_zero_points: int32")
      .Input("output_scales: float")
      .Input("output_zero_points: int32")
      .Output("output: Tout")
      .Attr("Tin: {qint8}")
      .Attr("Tout: {qint32}");
  WindowAttributes(b);
  for (const char* of : {"lhs", "rhs", "output"}) LevelAttributes(b, of);
  b.Doc("The convolution of uniformly quantized tensors.")
      .Shape(UniformConvShape<false>)
      .Cpu(Compute<UniformConv>);
  return b;
}

OpBuilder HybridConvOp() {
  OpBuilder b("UniformQuantizedConvolutionHybrid");
  b.Input("lhs: Tlhs")
      .Input("rhs: Trhs")
      .Input("rhs_scales: float")
      .Input("rhs_zero_points: int32")
      .Output("output: Tout")
      .Attr("Tlhs: {float}")
      .Attr("Trhs: {qint8}")
      .Attr("Tout: {float}");
  WindowAttributes(b);
  LevelAttributes(b, "rhs");
  b.Doc("The convolution of floats with a uniformly quantized filter.")
      .Shape(UniformConvShape<true>)
      .Cpu(Compute<HybridConv>);
  return b;
}

[[maybe_unused]] const OpRegistrar kUniformConvs[] = {UniformConvOp(),
                                                      HybridConvOp()};

}  // namespace
}  // namespace headrace
