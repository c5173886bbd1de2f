// Dense, Embedding, Dropout, and layers that change shapes.
#include "cc/compose.h"
#include "cc/seeds.h"
#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

using internal::Ints;
using internal::Number;
using internal::Op;
using internal::Throw;

Dense::Dense(int64_t units, DenseOptions options)
    : Layer("dense"), units_(units), options_(std::move(options)) {
  if (units <= 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Received an invalid value for `units`, expected a "
                       "positive integer. Received: units=",
                       units));
  }
  set_input_rank(2, /*exact=*/false);
  set_supports_masking();
  set_activity_regularizer(options_.activity_regularizer);
}

void Dense::MakeWeights(const TensorShape& input) {
  if (!input.known_rank || input.dims.back() < 0) {
    Throw(
        ErrorCode::kInvalidArgument,
        "The last dimension of the inputs to a Dense layer should be defined. "
        "Found None. Full input shape received: " +
            input.ToString());
  }
  kernel_ = AddWeight("kernel", {input.dims.back(), units_},
                      {options_.kernel_initializer, options_.kernel_regularizer,
                       options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {units_},
                      {options_.bias_initializer, options_.bias_regularizer,
                       options_.bias_constraint});
  }
}

Tensor Dense::Call(const Tensor& x, bool training) {
  Tensor out = internal::TimesKernel(internal::Cast(x, dtype()), kernel_);
  if (bias_) out = Op("BiasAdd", {out, bias_});
  return options_.activation(out);
}

Embedding::Embedding(int64_t input_dim, int64_t output_dim,
                     EmbeddingOptions options)
    : Layer("embedding"),
      input_dim_(input_dim),
      output_dim_(output_dim),
      options_(std::move(options)) {
  if (input_dim <= 0 || output_dim <= 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Both `input_dim` and `output_dim` should be positive, "
                       "Received input_dim = ",
                       input_dim, " and output_dim = ", output_dim));
  }
  set_activity_regularizer(options_.activity_regularizer);
}

void Embedding::MakeWeights(const TensorShape& input) {
  embeddings_ = AddWeight(
      "embeddings", {input_dim_, output_dim_},
      {options_.embeddings_initializer, options_.embeddings_regularizer,
       options_.embeddings_constraint});
}

Tensor Embedding::Call(const Tensor& x, bool training) {
  // What the lookup takes; Keras casts all else to int32.
  const bool whole = x.dtype() == DType::kInt32 || x.dtype() == DType::kInt64;
  const Tensor rows = whole ? x : internal::Cast(x, DType::kInt32);
  return internal::GatherRows(embeddings_, rows);
}

Tensor Embedding::MaskFor(const std::vector<Tensor>& inputs) const {
  if (!options_.mask_zero) return Tensor();
  const Tensor& x = inputs[0];
  return Op("NotEqual", {x, Number(x.dtype(), 0)});
}

Masking::Masking(double mask_value)
    : Layer("masking"), mask_value_(mask_value) {
  set_input_rank(2, /*exact=*/false);
}

Tensor Masking::Shown(const Tensor& x, bool keep_dims) const {
  const Tensor other = Op("NotEqual", {x, Number(x.dtype(), mask_value_)});
  return internal::Reduce("Any", other, {-1}, keep_dims);
}

Tensor Masking::Call(const Tensor& x, bool training) {
  return x * internal::Cast(Shown(x, /*keep_dims=*/true), x.dtype());
}

Tensor Masking::MaskFor(const std::vector<Tensor>& inputs) const {
  return Shown(inputs[0], /*keep_dims=*/false);
}

Dropout::Dropout(double rate, std::optional<int64_t> seed,
                 std::vector<int64_t> noise_shape)
    : Layer("dropout"),
      rate_(rate),
      seed_(seed),
      noise_shape_(std::move(noise_shape)) {
  if (!(rate >= 0 && rate < 1)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Invalid value ", rate,
                       " received for `rate`, expected "
                       "a value between 0 and 1."));
  }
  set_supports_masking();
}

Tensor Dropout::Call(const Tensor& x, bool training) {
  if (!training || rate_ == 0) return x;
  Tensor shape = internal::ShapeOf(x);
  if (!noise_shape_.empty()) {
    if (x.shape().rank() != static_cast<int>(noise_shape_.size())) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Dropout: a noise_shape of ", noise_shape_.size(),
                         " sizes for inputs of shape ", x.shape().ToString()));
    }
    const Tensor given = Ints(noise_shape_);
    const Tensor open = Op("Less", {given, Ints({0})});
    shape = Op("SelectV2", {open, shape, given});
  }
  return internal::Dropped(x, rate_, shape, seed_);
}

Flatten::Flatten() : Layer("flatten") { set_input_rank(1, /*exact=*/false); }

Tensor Flatten::Call(const Tensor& x, bool training) {
  const TensorShape shape = x.shape();
  int64_t whole = 1;
  for (int i = 1; i < shape.rank(); ++i) {
    whole = whole < 0 || shape[i] < 0 ? -1 : whole * shape[i];
  }
  if (shape.known_rank && whole >= 0) return internal::Reshape(x, {-1, whole});
  const Tensor batch = Op(
      "StridedSlice", {internal::ShapeOf(x), Ints({0}), Ints({1}), Ints({1})});
  const Tensor full =
      Op("ConcatV2", {batch, Ints({-1}), internal::Int(0)}, {{"N", 2}});
  return Op("Reshape", {x, full});
}

Reshape::Reshape(std::vector<int64_t> target_shape)
    : Layer("reshape"), target_(std::move(target_shape)) {
  int open = 0;
  for (const int64_t n : target_) {
    open += n == -1;
    if (n < -1) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Reshape: a size of ", n));
    }
  }
  if (open > 1) {
    Throw(ErrorCode::kInvalidArgument,
          "There must be at most one unknown dimension in output_shape. "
          "Received: output_shape=" +
              TensorShape(target_).ToString() + ".");
  }
  set_input_rank(1, /*exact=*/false);
}

Tensor Reshape::Call(const Tensor& x, bool training) {
  const TensorShape shape = x.shape();
  std::vector<int64_t> full = {shape.known_rank ? shape[0] : -1};
  full.insert(full.end(), target_.begin(), target_.end());
  bool open = false;
  for (const int64_t n : target_) open = open || n < 0;
  if (full[0] >= 0 || !open) return internal::Reshape(x, full);
  const Tensor batch = Op(
      "StridedSlice", {internal::ShapeOf(x), Ints({0}), Ints({1}), Ints({1})});
  const Tensor sizes =
      Op("ConcatV2", {batch, Ints(target_), internal::Int(0)}, {{"N", 2}});
  return Op("Reshape", {x, sizes});
}

}  // namespace headrace::tf::layers
