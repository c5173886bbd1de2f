#include "headrace/layer/shaping.h"

#include <algorithm>

#include "cc/layer/spatial.h"
#include "cc/seeds.h"

namespace headrace::tf::layers {

using internal::Ints;
using internal::Op;
using internal::Throw;

Permute::Permute(std::vector<int64_t> dims)
    : Layer("permute"), order_(std::move(dims)) {
  order_.insert(order_.begin(), 0);
  std::vector<int64_t> sorted = order_;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == static_cast<int64_t>(i)) continue;
    Throw(ErrorCode::kInvalidArgument,
          "Invalid permutation argument `dims` for Permute Layer. The set of "
          "indices in `dims` must be consecutive and start from 1.");
  }
  set_input_rank(static_cast<int>(order_.size()), /*exact=*/true);
}
Tensor Permute::Call(const Tensor& x, bool training) {
  return internal::Transpose(x, order_);
}

RepeatVector::RepeatVector(int64_t count)
    : Layer("repeat_vector"), count_(count) {
  internal::CheckSizes({count}, "n");
  set_input_rank(2, /*exact=*/true);
}
Tensor RepeatVector::Call(const Tensor& x, bool training) {
  return Op("Tile",
            {Op("ExpandDims", {x, internal::Int(1)}), Ints({1, count_, 1})});
}

ActivityRegularization::ActivityRegularization(double l1, double l2)
    : Layer("activity_regularization") {
  set_activity_regularizer(regularizers::L1L2(l1, l2));
  set_supports_masking();
}
Tensor ActivityRegularization::Call(const Tensor& x, bool training) {
  return x;
}

GaussianNoise::GaussianNoise(double stddev, std::optional<int64_t> seed)
    : Layer("gaussian_noise"), stddev_(stddev), seed_(seed) {
  set_supports_masking();
}
Tensor GaussianNoise::Call(const Tensor& x, bool training) {
  if (!training) return x;
  const auto [first, second] = internal::OpSeeds(seed_);
  const Tensor drawn = Op("RandomStandardNormal", {internal::ShapeOf(x)},
                          {{"dtype", internal::Core(x.dtype())},
                           {"seed", first},
                           {"seed2", second}});
  return x + drawn * stddev_;
}

SpatialDropout1D::SpatialDropout1D(double rate, std::optional<int64_t> seed)
    : Dropout(rate, seed, {-1, 1, -1}) {
  set_name("spatial_dropout1d");
  set_input_rank(3, /*exact=*/true);
}
SpatialDropout2D::SpatialDropout2D(double rate, std::optional<int64_t> seed,
                                   const std::string& data_format)
    : Dropout(rate, seed,
              internal::ChannelsFirst(data_format)
                  ? std::vector<int64_t>{-1, -1, 1, 1}
                  : std::vector<int64_t>{-1, 1, 1, -1}) {
  set_name("spatial_dropout2d");
  set_input_rank(4, /*exact=*/true);
}

UnitNormalization::UnitNormalization(std::vector<int64_t> axis)
    : Layer("unit_normalization"), axis_(std::move(axis)) {
  if (axis_.empty()) {
    Throw(ErrorCode::kInvalidArgument, "UnitNormalization needs an axis");
  }
  set_supports_masking();
}
Tensor UnitNormalization::Call(const Tensor& x, bool training) {
  const Tensor sum =
      internal::Reduce("Sum", Op("Square", {x}), axis_, /*keep_dims=*/true);
  return x * Op("Rsqrt",
                {Op("Maximum", {sum, internal::Number(x.dtype(), 1e-12)})});
}

GroupNormalization::GroupNormalization(int64_t groups,
                                       GroupNormalizationOptions options)
    : Layer("group_normalization"),
      groups_(groups),
      options_(std::move(options)) {
  if (groups == 0 || groups < -1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("GroupNormalization: ", groups, " groups"));
  }
  set_input_rank(2, /*exact=*/false);
  set_supports_masking();
}

void GroupNormalization::MakeWeights(const TensorShape& input) {
  const int rank = input.rank();
  const int axis = options_.axis < 0 ? options_.axis + rank : options_.axis;
  if (axis < 1 || axis >= rank || input[axis] < 0) {
    Throw(
        ErrorCode::kInvalidArgument,
        absl::StrCat("GroupNormalization: no channels of known number along "
                     "axis ",
                     options_.axis, " of inputs of shape ", input.ToString()));
  }
  const int64_t size = input[axis];
  if (groups_ == -1) groups_ = size;
  if (size % groups_ != 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Number of groups (", groups_,
                       ") must be a multiple of the number of channels (", size,
                       ")."));
  }
  if (options_.scale) {
    gamma_ = AddWeight("gamma", {size},
                       {options_.gamma_initializer, options_.gamma_regularizer,
                        options_.gamma_constraint});
  }
  if (options_.center) {
    beta_ = AddWeight("beta", {size},
                      {options_.beta_initializer, options_.beta_regularizer,
                       options_.beta_constraint});
  }
}

Tensor GroupNormalization::Call(const Tensor& x, bool training) {
  const TensorShape shape = x.shape();
  const int rank = shape.rank();
  const int axis = options_.axis < 0 ? options_.axis + rank : options_.axis;
  const Tensor sizes = internal::ShapeOf(x);
  const auto part = [&](int64_t from, int64_t to) {
    return Op("StridedSlice", {sizes, Ints({from}), Ints({to}), Ints({1})});
  };
  const Tensor split =
      Op("ConcatV2",
         {part(0, axis), Ints({groups_, shape[axis] / groups_}),
          part(axis + 1, rank), internal::Int(0)},
         {{"N", 3}});
  const Tensor grouped = Op("Reshape", {x, split});
  std::vector<int64_t> axes, wide(rank, 1);
  for (int64_t i = 1; i <= rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  const Tensor mean = internal::Reduce("Mean", grouped, axes, true);
  const Tensor squares =
      Op("SquaredDifference", {grouped, Op("StopGradient", {mean})});
  const Tensor variance = internal::Reduce("Mean", squares, axes, true);
  const Tensor normal =
      (grouped - mean) * Op("Rsqrt", {variance + options_.epsilon});
  Tensor out = Op("Reshape", {normal, sizes});
  wide[axis] = shape[axis];
  if (gamma_) out = out * internal::Reshape(gamma_, wide);
  if (beta_) out = out + internal::Reshape(beta_, wide);
  return out;
}

}  // namespace headrace::tf::layers
