#include "headrace/layer/attention.h"

#include <cmath>

#include "cc/compose.h"

namespace headrace::tf::layers {

using internal::Cast;
using internal::Int;
using internal::Op;
using internal::Throw;

namespace {

Tensor Einsum(const std::string& equation, const Tensor& a, const Tensor& b) {
  return Op("Einsum", {a, b}, {{"N", 2}, {"equation", equation}});
}

Tensor Expanded(const Tensor& x, int64_t axis) {
  return Op("ExpandDims", {x, Int(axis)});
}

// Each query plus each key: [n, t, s, d]. In this order, as Python has it, so
// that gradients add up in the same one.
Tensor Crossed(const Tensor& query, const Tensor& key) {
  const Tensor rows = Expanded(query, -2);
  return rows + Expanded(key, -3);
}

Tensor Joined(const Tensor& a, const Tensor& b) {
  return a ? Op("LogicalAnd", {a, b}) : b;
}

void CheckDropout(double rate) {
  if (rate >= 0 && rate < 1) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Invalid value ", rate,
                     " received for `dropout`, expected a value between 0 and "
                     "1."));
}

// [1, rows, columns]: whether a column is not behind its row.
Tensor Causal(const Tensor& rows_of, int64_t row_axis, const Tensor& columns_of,
              int64_t column_axis) {
  const auto places = [](const Tensor& t, int64_t axis) {
    const Tensor size = Op("StridedSlice",
                           {internal::ShapeOf(t), internal::Ints({axis}),
                            internal::Ints({axis + 1}), internal::Ints({1})},
                           {{"shrink_axis_mask", 1}});
    return Op("Range", {Int(0), size, Int(1)});
  };
  return Expanded(
      Op("GreaterEqual", {Expanded(places(rows_of, row_axis), 1),
                          Expanded(places(columns_of, column_axis), 0)}),
      0);
}

// einsum(inputs, kernel) + bias.
class EinsumDense : public Layer {
 public:
  EinsumDense(std::string equation, TensorShape kernel, TensorShape bias,
              bool use_bias, WeightOptions kernel_options,
              WeightOptions bias_options)
      : Layer("einsum_dense"),
        equation_(std::move(equation)),
        kernel_shape_(std::move(kernel)),
        bias_shape_(std::move(bias)),
        use_bias_(use_bias),
        kernel_options_(std::move(kernel_options)),
        bias_options_(std::move(bias_options)) {}

 protected:
  void MakeWeights(const TensorShape& input) override {
    kernel_ = AddWeight("kernel", kernel_shape_, kernel_options_);
    if (use_bias_) bias_ = AddWeight("bias", bias_shape_, bias_options_);
  }
  Tensor Call(const Tensor& x, bool training) override {
    const Tensor out = Einsum(equation_, x, kernel_);
    return bias_ ? out + bias_ : out;
  }

 private:
  std::string equation_;
  TensorShape kernel_shape_, bias_shape_;
  bool use_bias_;
  WeightOptions kernel_options_, bias_options_;
  Variable kernel_, bias_;
};

// query, value and key, of one to three inputs.
std::vector<Tensor> Three(const std::vector<Tensor>& inputs,
                          const std::string& layer, size_t least) {
  if (inputs.size() < least || inputs.size() > 3) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat(layer,
                       " layer must be called on a list of inputs, namely "
                       "[query, value] or [query, value, key]. Received ",
                       inputs.size(), " inputs"));
  }
  const Tensor& value = inputs[inputs.size() > 1 ? 1 : 0];
  return {inputs[0], value, inputs.size() > 2 ? inputs[2] : value};
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                                       MultiHeadAttentionOptions options)
    : Layer("multi_head_attention"),
      heads_(num_heads),
      key_dim_(key_dim),
      options_(std::move(options)) {
  const int64_t sizes[] = {heads_, key_dim_, options_.value_dim.value_or(1),
                           options_.output_size.value_or(1)};
  for (const int64_t n : sizes) {
    if (n > 0) continue;
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("MultiHeadAttention: a size of ", n));
  }
  CheckDropout(options_.dropout);
  set_activity_regularizer(options_.activity_regularizer);
  set_input_rank(3, /*exact=*/true);
  set_supports_masking();
}

std::shared_ptr<Layer> MultiHeadAttention::Projection(
    const std::string& equation, const TensorShape& kernel,
    const TensorShape& bias) const {
  // Each gets values of its own.
  const WeightOptions of_kernel{options_.kernel_initializer.Renewed(),
                                options_.kernel_regularizer,
                                options_.kernel_constraint};
  const WeightOptions of_bias{options_.bias_initializer.Renewed(),
                              options_.bias_regularizer,
                              options_.bias_constraint};
  return std::make_shared<EinsumDense>(equation, kernel, bias,
                                       options_.use_bias, of_kernel, of_bias);
}

void MultiHeadAttention::MakeAllWeights(
    const std::vector<TensorShape>& inputs) {
  const auto width = [&](size_t i) {
    const TensorShape& shape = inputs[std::min(i, inputs.size() - 1)];
    const int64_t n = shape.known_rank ? shape.dims.back() : -1;
    if (n >= 0) return n;
    Throw(ErrorCode::kInvalidArgument,
          "the number of features of MultiHeadAttention's inputs must be "
          "known: " +
              shape.ToString());
  };
  const int64_t value_dim = options_.value_dim.value_or(key_dim_);
  const int64_t out = options_.output_size.value_or(width(0));
  const std::string split = "abc,cde->abde";
  const TensorShape keys{heads_, key_dim_}, values{heads_, value_dim};
  query_ = Projection(split, {width(0), heads_, key_dim_}, keys);
  key_ = Projection(split, {width(2), heads_, key_dim_}, keys);
  value_ = Projection(split, {width(1), heads_, value_dim}, values);
  output_ = Projection("abcd,cde->abe", {heads_, value_dim, out}, {out});
  Own("_query_dense", query_);
  Own("_key_dense", key_);
  Own("_value_dense", value_);
  Own("_output_dense", output_);
}

Tensor MultiHeadAttention::MaskOf(const std::vector<Tensor>& three,
                                  const Tensor& attention_mask) const {
  const Tensor &query = three[0], &value = three[1], &key = three[2];
  Tensor mask;
  if (query.mask()) mask = Expanded(query.mask(), 2);
  if (value.mask()) mask = Joined(mask, Expanded(value.mask(), 1));
  // Of [query, value] the key is the value: its mask has been joined already.
  const bool own_key = internal::Access::ValueOf(key).id() !=
                       internal::Access::ValueOf(value).id();
  if (own_key && key.mask()) mask = Joined(mask, Expanded(key.mask(), 1));
  if (options_.use_causal_mask) {
    mask = Joined(mask, Causal(query, 1, value, 1));
  }
  if (attention_mask) {
    const Tensor given = Cast(attention_mask, DType::kBool);
    // A mask for each head: the others hold for all heads.
    if (mask && given.shape().rank() == 4) mask = Expanded(mask, 1);
    mask = Joined(mask, given);
  }
  return mask && mask.shape().rank() == 3 ? Expanded(mask, 1) : mask;
}

AttentionResult MultiHeadAttention::Compute(const std::vector<Tensor>& inputs,
                                            const Tensor& attention_mask,
                                            bool training) {
  const std::vector<Tensor> three = Three(inputs, name(), 1);
  const Tensor mask = MaskOf(three, attention_mask);
  const Tensor q = (*query_)(three[0]).with_mask({});
  const Tensor k = (*key_)(three[2]).with_mask({});
  const Tensor v = (*value_)(three[1]).with_mask({});
  const double scale = 1 / std::sqrt(static_cast<double>(key_dim_));
  // a: batch, b: queries, e: keys, c: heads, d: features. The query is scaled
  // and not the scores, which are many more.
  Tensor scores = Einsum("aecd,abcd->acbe", k, q * scale);
  if (mask) {
    const Tensor shown = Cast(mask, scores.dtype());
    // Keras' number for what is hidden; of half the lowest there is.
    const double low = scores.dtype() == DType::kFloat16 ? -65504.0 : -1e9;
    scores = scores + (1.0 - shown) * low;
  }
  scores = Op("Softmax", {scores});
  Tensor shared = scores;
  if (training && options_.dropout > 0) {
    shared = internal::Dropped(scores, options_.dropout,
                               internal::ShapeOf(scores), {});
  }
  return {(*output_)(Einsum("acbe,aecd->abcd", shared, v)), scores};
}

Tensor MultiHeadAttention::CallAll(const std::vector<Tensor>& inputs,
                                   bool training) {
  return Compute(inputs, {}, training).output;
}

AttentionResult MultiHeadAttention::Run(const std::vector<Tensor>& inputs,
                                        const Tensor& attention_mask,
                                        bool training) {
  const Entered entered(this);
  const std::vector<Tensor> ready = Ready(inputs);
  AttentionResult result = Compute(ready, attention_mask, training);
  const std::vector<Tensor> both =
      Finished(ready, {result.output, result.scores});
  return {both[0], both[1]};
}

PlainAttention::PlainAttention(std::string name, double dropout,
                               bool use_causal_mask)
    : Layer(std::move(name)),
      dropout_(dropout),
      use_causal_mask_(use_causal_mask) {
  CheckDropout(dropout);
  set_supports_masking();
  set_input_rank(3, /*exact=*/true);
}

AttentionResult PlainAttention::Compute(const std::vector<Tensor>& inputs,
                                        bool training) {
  const std::vector<Tensor> three = Three(inputs, name(), 2);
  Tensor scores = Scores(three[0], three[2]), shown;
  if (three[1].mask()) shown = Expanded(three[1].mask(), 1);
  if (use_causal_mask_) shown = Joined(shown, Causal(scores, 1, scores, 2));
  if (shown) {
    // Keras' numbers; half's largest.
    const double low = scores.dtype() == DType::kFloat16 ? 65504.0 : 1e9;
    scores = scores - low * Cast(Op("LogicalNot", {shown}), scores.dtype());
  }
  Tensor weights = Op("Softmax", {scores});
  if (training && dropout_ > 0) {
    weights =
        internal::Dropped(weights, dropout_, internal::ShapeOf(weights), {});
  }
  Tensor out = Op("BatchMatMulV2", {weights, three[1]});
  if (three[0].mask()) {
    // What a hidden query gives is zeros.
    out = out * Cast(Expanded(three[0].mask(), -1), out.dtype());
  }
  return {out, weights};
}

Tensor PlainAttention::CallAll(const std::vector<Tensor>& inputs,
                               bool training) {
  return Compute(inputs, training).output;
}

AttentionResult PlainAttention::Run(const std::vector<Tensor>& inputs,
                                    bool training) {
  const Entered entered(this);
  const std::vector<Tensor> ready = Ready(inputs);
  AttentionResult result = Compute(ready, training);
  const std::vector<Tensor> both =
      Finished(ready, {result.output, result.scores});
  return {both[0], both[1]};
}

Attention::Attention(AttentionOptions options)
    : PlainAttention("attention", options.dropout, options.use_causal_mask),
      options_(std::move(options)) {
  if (options_.score_mode != "dot" && options_.score_mode != "concat") {
    Throw(ErrorCode::kInvalidArgument,
          "Received: score_mode=" + options_.score_mode +
              ". Acceptable values are: [\"dot\", \"concat\"]");
  }
}

void Attention::MakeAllWeights(const std::vector<TensorShape>& inputs) {
  if (options_.use_scale) scale_ = AddWeight("scale", {}, "ones");
  if (options_.score_mode == "concat") {
    concat_score_weight_ = AddWeight("concat_score_weight", {}, "ones");
  }
}

Tensor Attention::Scores(const Tensor& query, const Tensor& key) const {
  if (options_.score_mode == "dot") {
    const Tensor scores = Op("BatchMatMulV2", {query, key}, {{"adj_y", true}});
    return scale_ ? scores * scale_ : scores;
  }
  Tensor mixed = Crossed(query, key);
  if (scale_) mixed = scale_ * mixed;
  return concat_score_weight_ *
         internal::Reduce("Sum", Op("Tanh", {mixed}), {-1});
}

AdditiveAttention::AdditiveAttention(AdditiveAttentionOptions options)
    : PlainAttention("additive_attention", options.dropout,
                     options.use_causal_mask),
      options_(options) {}

void AdditiveAttention::MakeAllWeights(const std::vector<TensorShape>& inputs) {
  if (!options_.use_scale) return;
  const TensorShape& shape = inputs[0];
  if (!shape.known_rank || shape.dims.back() < 0) {
    Throw(ErrorCode::kInvalidArgument,
          "the number of features of AdditiveAttention's inputs must be "
          "known: " +
              shape.ToString());
  }
  scale_ = AddWeight("scale", {shape.dims.back()}, "glorot_uniform");
}

Tensor AdditiveAttention::Scores(const Tensor& query, const Tensor& key) const {
  const Tensor mixed = Op("Tanh", {Crossed(query, key)});
  return internal::Reduce("Sum", scale_ ? scale_ * mixed : mixed, {-1});
}

}  // namespace headrace::tf::layers
