#include "cc/compose.h"
#include "headrace/layer/activations.h"

namespace headrace::tf::layers {

using internal::Number;
using internal::Op;
using internal::Throw;

namespace {

Tensor Leaky(const Tensor& x, double alpha) {
  return Op("LeakyRelu", {x}, {{"alpha", static_cast<float>(alpha)}});
}

Tensor AsMask(const Tensor& shown, const Tensor& like) {
  return internal::Cast(shown, like.dtype());
}

}  // namespace

ReLU::ReLU(ReLUOptions options) : Layer("re_lu"), options_(options) {
  // So written that NaN is refused, too.
  if (!(options_.negative_slope >= 0)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("negative_slope of a ReLU layer cannot be a negative "
                       "value. Received: ",
                       options_.negative_slope));
  }
  set_supports_masking();
}

Tensor ReLU::Call(const Tensor& x, bool training) {
  const double slope = options_.negative_slope, limit = options_.threshold;
  Tensor out;
  if (limit != 0) {
    out = x * AsMask(x > limit, x);
    if (slope != 0) {
      out = out - slope * (limit - x) * AsMask(x <= limit, x);
    }
  } else {
    out = slope != 0 ? Leaky(x, slope) : Op("Relu", {x});
  }
  if (!options_.max_value) return out;
  return Op("Minimum", {out, Number(out.dtype(), *options_.max_value)});
}

LeakyReLU::LeakyReLU(double alpha) : Layer("leaky_re_lu"), alpha_(alpha) {
  set_supports_masking();
}
Tensor LeakyReLU::Call(const Tensor& x, bool training) {
  return Leaky(x, alpha_);
}

ELU::ELU(double alpha) : Layer("elu"), alpha_(alpha) { set_supports_masking(); }
Tensor ELU::Call(const Tensor& x, bool training) {
  const Tensor out = Op("Elu", {x});
  // The op has no alpha: it is the function for 1.
  return alpha_ == 1 ? out : Op("SelectV2", {x > 0, out, alpha_ * out});
}

ThresholdedReLU::ThresholdedReLU(double theta)
    : Layer("thresholded_re_lu"), theta_(theta) {
  set_supports_masking();
}
Tensor ThresholdedReLU::Call(const Tensor& x, bool training) {
  return x * AsMask(x > theta_, x);
}

Softmax::Softmax(std::vector<int64_t> axis)
    : Layer("softmax"), axis_(std::move(axis)) {
  if (axis_.empty()) {
    Throw(ErrorCode::kInvalidArgument, "Softmax needs an axis");
  }
  set_supports_masking();
}

Tensor Softmax::CallAll(const std::vector<Tensor>& inputs, bool training) {
  if (inputs.size() > 2) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Softmax takes an input and a mask, not ", inputs.size(),
                       " inputs"));
  }
  Tensor x = inputs[0];
  const Tensor mask = inputs.size() > 1 ? inputs[1] : x.mask();
  if (mask) {
    // Keras' numbers, and no infinity: a row that is all hidden would give NaN.
    const double low = x.dtype() == DType::kFloat16 ? -65504.0 : -1e9;
    x = x + (1.0 - AsMask(mask, x)) * low;
  }
  const int rank = x.shape().rank();
  if (axis_.size() == 1 && (axis_[0] == -1 || axis_[0] == rank - 1)) {
    return Op("Softmax", {x});
  }
  for (const int64_t a : axis_) {
    if (rank >= 0 && a >= -rank && a < rank) continue;
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Softmax: no axis ", a, " in inputs of shape ",
                       x.shape().ToString()));
  }
  if (axis_.size() == 1) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < rank; ++i) order.push_back(i);
    // An exchange of two axes undoes itself, so one order serves both ways.
    std::swap(order[(axis_[0] + rank) % rank], order.back());
    return internal::Transpose(Op("Softmax", {internal::Transpose(x, order)}),
                               order);
  }
  // The maximum cancels out: only overflow depends on it, no gradient.
  const Tensor most =
      Op("StopGradient", {internal::Reduce("Max", x, axis_, true)});
  const Tensor sum =
      internal::Reduce("Sum", Op("Exp", {x - most}), axis_, true);
  return Op("Exp", {x - (Op("Log", {sum}) + most)});
}

PReLU::PReLU(PReLUOptions options)
    : Layer("p_re_lu"), options_(std::move(options)) {
  set_supports_masking();
}

void PReLU::MakeWeights(const TensorShape& input) {
  if (!input.known_rank || input.rank() < 1) {
    Throw(ErrorCode::kInvalidArgument,
          "PReLU: inputs of shape " + input.ToString());
  }
  TensorShape shape = input;
  shape.dims.erase(shape.dims.begin());
  for (const int axis : options_.shared_axes) {
    if (axis < 1 || axis >= input.rank()) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("PReLU: no axis ", axis,
                         " beside the batch in inputs of shape ",
                         input.ToString()));
    }
    shape.dims[axis - 1] = 1;
  }
  alpha_ = AddWeight("alpha", shape,
                     {options_.alpha_initializer, options_.alpha_regularizer,
                      options_.alpha_constraint});
}

Tensor PReLU::Call(const Tensor& x, bool training) {
  return Op("Relu", {x}) - alpha_ * Op("Relu", {-x});
}

}  // namespace headrace::tf::layers
