#include "cc/compose.h"
#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

namespace {

struct Moments {
  Tensor mean, variance;
};

// Over `axes`, which stay with size 1.
Moments MomentsOf(const Tensor& x, const std::vector<int64_t>& axes) {
  const Tensor mean = internal::Reduce("Mean", x, axes, true);
  const Tensor squares =
      // The mean is where the variance is least, so its share of the gradient
      // is zero: not followed, as upstream does not.
      Op("SquaredDifference", {x, Op("StopGradient", {mean})});
  return {mean, internal::Reduce("Mean", squares, axes, true)};
}

Tensor Normalized(const Tensor& x, const Tensor& mean, const Tensor& variance,
                  const Tensor& offset, const Tensor& scale, double epsilon) {
  Tensor inverse = Op("Rsqrt", {variance + epsilon});
  if (scale) inverse = inverse * scale;
  const Tensor shift = offset ? offset - mean * inverse : -mean * inverse;
  return x * inverse + shift;
}

int AxisIn(int axis, int rank, const char* layer) {
  if (axis >= -rank && axis < rank) return (axis + rank) % rank;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Invalid value for `axis` argument: ", axis,
                     ", with inputs of rank ", rank, " to ", layer));
}

int64_t SizeOf(const TensorShape& input, int axis) {
  if (input[axis] >= 0) return input[axis];
  Throw(
      ErrorCode::kInvalidArgument,
      "All `axis` values must be kept in the input shape: " + input.ToString());
}

void CheckRank(const TensorShape& shape, const std::string& layer) {
  if (shape.known_rank) return;
  Throw(ErrorCode::kInvalidArgument,
        "the inputs of " + layer + " must have a known rank");
}

}  // namespace

BatchNormalization::BatchNormalization(BatchNormalizationOptions options)
    : Layer("batch_normalization"), options_(std::move(options)) {
  set_input_rank(2, /*exact=*/false);
  set_supports_masking();
}

int BatchNormalization::AxisOf(int rank) const {
  return AxisIn(options_.axis, rank, "BatchNormalization");
}

void BatchNormalization::MakeWeights(const TensorShape& input) {
  CheckRank(input, name());
  const TensorShape shape{SizeOf(input, AxisOf(input.rank()))};
  if (options_.scale) {
    gamma_ = AddWeight("gamma", shape,
                       {options_.gamma_initializer, options_.gamma_regularizer,
                        options_.gamma_constraint});
  }
  if (options_.center) {
    beta_ = AddWeight("beta", shape,
                      {options_.beta_initializer, options_.beta_regularizer,
                       options_.beta_constraint});
  }
  moving_mean_ =
      AddWeight("moving_mean", shape, options_.moving_mean_initializer, false);
  moving_variance_ = AddWeight("moving_variance", shape,
                               options_.moving_variance_initializer, false);
}

void BatchNormalization::Move(const Tensor& mean, const Tensor& variance) {
  const double rate = 1.0 - options_.momentum;
  moving_mean_.assign_sub((moving_mean_.value() - mean) * rate);
  moving_variance_.assign_sub((moving_variance_.value() - variance) * rate);
}

Tensor BatchNormalization::CallFused(const Tensor& x, bool training) {
  const Tensor mean = moving_mean_.value(), variance = moving_variance_.value();
  const TensorShape shape = moving_mean_.shape();
  const DType d = mean.dtype();
  const Tensor none = Tensor::Copy(d, {0}, nullptr, 0);
  const std::vector<Tensor> found = internal::OpAll(
      "FusedBatchNormV3",
      {x, gamma_ ? gamma_.value() : internal::Full(d, shape, 1),
       beta_ ? beta_.value() : internal::Full(d, shape, 0),
       training ? none : mean, training ? none : variance},
      {{"epsilon", options_.epsilon}, {"is_training", training}});
  if (training) Move(found[1], found[2]);
  return found[0];
}

Tensor BatchNormalization::Call(const Tensor& x, bool training) {
  training = training && trainable();
  const TensorShape shape = x.shape();
  CheckRank(shape, name());
  const int rank = shape.rank(), axis = AxisOf(rank);
  if (rank == 4 && axis == 3) return CallFused(x, training);
  if (rank == 4 && axis == 1) {
    return internal::Transpose(
        CallFused(internal::Transpose(x, {0, 2, 3, 1}), training),
        {0, 3, 1, 2});
  }
  Tensor mean, variance;
  if (training) {
    std::vector<int64_t> others;
    for (int i = 0; i < rank; ++i) {
      if (i != axis) others.push_back(i);
    }
    const Moments moments = MomentsOf(x, others);
    const AttrMap drop = {{"squeeze_dims", others}};
    mean = Op("Squeeze", {moments.mean}, drop);
    variance = Op("Squeeze", {moments.variance}, drop);
    Move(mean, variance);
  } else {
    mean = moving_mean_.value();
    variance = moving_variance_.value();
  }
  std::vector<int64_t> wide(rank, 1);
  wide[axis] = moving_mean_.shape()[0];
  auto fit = [&](const Tensor& t) {
    return axis == rank - 1 || !t ? t : internal::Reshape(t, wide);
  };
  return Normalized(x, fit(mean), fit(variance),
                    beta_ ? fit(beta_.value()) : Tensor(),
                    gamma_ ? fit(gamma_.value()) : Tensor(), options_.epsilon);
}

LayerNormalization::LayerNormalization(LayerNormalizationOptions options)
    : Layer("layer_normalization"), options_(std::move(options)) {
  set_input_rank(2, /*exact=*/false);
  set_supports_masking();
}

std::vector<int> LayerNormalization::AxesOf(int rank) const {
  std::vector<int> axes;
  for (const int a : options_.axis) {
    axes.push_back(AxisIn(a, rank, "LayerNormalization"));
  }
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (axes.empty() ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    Throw(ErrorCode::kInvalidArgument,
          "LayerNormalization: no axis, or one of them twice");
  }
  return axes;
}

void LayerNormalization::MakeWeights(const TensorShape& input) {
  CheckRank(input, name());
  TensorShape shape;
  for (const int a : AxesOf(input.rank())) {
    shape.dims.push_back(SizeOf(input, a));
  }
  if (options_.scale) {
    gamma_ = AddWeight("gamma", shape,
                       {options_.gamma_initializer, options_.gamma_regularizer,
                        options_.gamma_constraint});
  }
  if (options_.center) {
    beta_ = AddWeight("beta", shape,
                      {options_.beta_initializer, options_.beta_regularizer,
                       options_.beta_constraint});
  }
}

Tensor LayerNormalization::Call(const Tensor& x, bool training) {
  const TensorShape shape = x.shape();
  CheckRank(shape, name());
  const std::vector<int> given = AxesOf(shape.rank());
  const std::vector<int64_t> axes(given.begin(), given.end());
  const Moments moments = MomentsOf(x, axes);
  std::vector<int64_t> wide(shape.rank(), 1);
  for (const int a : given) wide[a] = shape[a];
  const bool last = given.size() == 1 && given[0] == shape.rank() - 1;
  auto fit = [&](const Variable& v) {
    if (!v) return Tensor();
    return last ? v.value() : internal::Reshape(v, wide);
  };
  return Normalized(x, moments.mean, moments.variance, fit(beta_), fit(gamma_),
                    options_.epsilon);
}

}  // namespace headrace::tf::layers
