// Attention: tf.keras.layers.MultiHeadAttention, Attention, AdditiveAttention.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

// What Run gives: the layer's output, and what it looked at.
struct AttentionResult {
  Tensor output;
  // The shares that each query gave: they sum up to 1 over the values.
  Tensor scores;
};

struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim;  // of each head; key_dim if not given
  double dropout = 0;                // of the scores, while training
  bool use_bias = true;
  std::optional<int64_t> output_size;  // as wide as the query if not given
  // Queries see values up to their own place only.
  bool use_causal_mask = false;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer, bias_regularizer;
  Constraint kernel_constraint, bias_constraint;
  Regularizer activity_regularizer;
};

// Attention of several heads (Vaswani et al., 2017): query [n, t, a], value [n,
// s, b] and key [n, s, c] (the value if not given) to [n, t, output_size].
// Called with {query, value} or {query, value, key}; with one input, that is
// all three. Numbers of features must be known. Masks of the inputs hide their
// steps; the output has the query's. A query that may see nothing looks at all
// values alike, as Keras' does. Checkpoints know the weights as
// _query_dense/kernel, _key_dense/..., _value_dense/... and _output_dense/....
class HR_API MultiHeadAttention : public Layer {
 public:
  // `key_dim` is the size of each head's queries and keys, by whose root scores
  // are divided. Throws kInvalidArgument for sizes that are not positive and a
  // dropout outside of [0, 1).
  MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                     MultiHeadAttentionOptions options = {});

  // The same with a mask, bool [n, t, s] or [n, heads, t, s] (or 1 for sizes of
  // any), false where a query must not see a value; and with the scores, [n,
  // heads, t, s].
  AttentionResult Run(const std::vector<Tensor>& inputs,
                      const Tensor& attention_mask = {}, bool training = false);

 protected:
  void MakeAllWeights(const std::vector<TensorShape>& inputs) override;
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;

 private:
  std::shared_ptr<Layer> Projection(const std::string& equation,
                                    const TensorShape& kernel,
                                    const TensorShape& bias) const;
  Tensor MaskOf(const std::vector<Tensor>& inputs,
                const Tensor& attention_mask) const;
  AttentionResult Compute(const std::vector<Tensor>& inputs,
                          const Tensor& attention_mask, bool training);

  int64_t heads_, key_dim_;
  MultiHeadAttentionOptions options_;
  std::shared_ptr<Layer> query_, key_, value_, output_;
};

// What Attention and AdditiveAttention share: query [n, t, d], value [n, s, v]
// and key [n, s, d] (the value if not given), called with {query, value} or
// {query, value, key}, to [n, t, v]. The value's mask hides its steps; the
// output is zero where the query's mask is false, and has that mask. Throws
// kInvalidArgument for other numbers of inputs, for other ranks than 3 and for
// a dropout outside of [0, 1).
class HR_API PlainAttention : public Layer {
 public:
  // The same with the scores, [n, t, s].
  AttentionResult Run(const std::vector<Tensor>& inputs, bool training = false);

 protected:
  PlainAttention(std::string name, double dropout, bool use_causal_mask);
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;
  virtual Tensor Scores(const Tensor& query, const Tensor& key) const = 0;

 private:
  AttentionResult Compute(const std::vector<Tensor>& inputs, bool training);

  double dropout_;
  bool use_causal_mask_;
};

struct AttentionOptions {
  bool use_scale = false;          // the scores times a weight, `scale`
  std::string score_mode = "dot";  // or "concat": of tanh(query + key)
  double dropout = 0;
  bool use_causal_mask = false;
};
// Scores are the products of queries and keys (Luong et al., 2015), not divided
// by anything. Weights: scale and concat_score_weight, scalars that begin as 1,
// where the options ask for them. Other score modes throw kInvalidArgument.
class HR_API Attention : public PlainAttention {
 public:
  explicit Attention(AttentionOptions options = {});

 protected:
  void MakeAllWeights(const std::vector<TensorShape>& inputs) override;
  Tensor Scores(const Tensor& query, const Tensor& key) const override;

 private:
  AttentionOptions options_;
  Variable scale_, concat_score_weight_;
};

struct AdditiveAttentionOptions {
  bool use_scale = true;  // a weight for each feature, `scale`
  double dropout = 0;
  bool use_causal_mask = false;
};
// Scores are sums of tanh(query + key) (Bahdanau et al., 2014), which takes
// memory for n * t * s * d numbers. Weight: scale [d], with use_scale.
class HR_API AdditiveAttention : public PlainAttention {
 public:
  explicit AdditiveAttention(AdditiveAttentionOptions options = {});

 protected:
  void MakeAllWeights(const std::vector<TensorShape>& inputs) override;
  Tensor Scores(const Tensor& query, const Tensor& key) const override;

 private:
  AdditiveAttentionOptions options_;
  Variable scale_;
};

}  // namespace headrace::tf::layers
