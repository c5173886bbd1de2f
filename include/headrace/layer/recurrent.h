// Recurrent layers: tf.keras.layers.SimpleRNN, LSTM and GRU.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

// recurrent_activation is of LSTM and GRU alone, unit_forget_bias (a bias of 1
// for LSTM's forget gate, Jozefowicz et al., 2015) of LSTM, reset_after (the
// reset gate acts behind the product with the recurrent kernel, and bias has
// two rows, as cuDNN has it) of GRU. The others pass over them.
struct RecurrentOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;
  bool reset_after = true;
  // Of inputs and of states, while training; one choice a sequence, the same at
  // every step (Gal and Ghahramani, 2016). Below 1 (kInvalidArgument); negative
  // ones are 0.
  double dropout = 0, recurrent_dropout = 0;
  // All outputs, [n, steps, units], instead of the last, [n, units].
  bool return_sequences = false;
  // The last step first; outputs of all steps stand in that order.
  bool go_backwards = false;
  // Each batch begins with the states that the one before left, until
  // reset_states; all batches have one size. The states are no part of
  // checkpoints, as in Keras.
  bool stateful = false;
  Regularizer kernel_regularizer, recurrent_regularizer, bias_regularizer;
  Constraint kernel_constraint, recurrent_constraint, bias_constraint;
  Regularizer activity_regularizer;
};

// What recurrent layers share: a cell that is run over the second axis of [n,
// steps, features], of which the features must be known. Checkpoints know the
// weights as cell/kernel [features, gates * units], cell/recurrent_kernel
// [units, gates * units] and cell/bias. Where the inputs' mask, a bool [n,
// steps], is false, states and outputs stay what they were; outputs of all
// steps have the same mask. Called with {inputs, states...}, they begin with
// those states, [n, units] each; Outputs() gives {output, states...}. Throws
// kInvalidArgument for units below 1, for other numbers of states, and,
// stateful, for a batch of unknown size.
class HR_API Recurrent : public Layer {
 public:
  struct Result {
    Tensor output;
    std::vector<Tensor> states;  // the last ones
  };
  // The same as operator(), with the states, and from other states than zeros.
  // A `mask` takes the place of the inputs'.
  Result Run(const Tensor& x, const std::vector<Tensor>& initial_states = {},
             const Tensor& mask = {}, bool training = false);
  // A layer of the same options, without weights, that goes the other way
  // (Bidirectional). Initializers without seeds draw other values.
  virtual std::shared_ptr<Recurrent> Reversed() const = 0;
  bool return_sequences() const { return options_.return_sequences; }
  // The states of a stateful layer, once it was called (before: none); and
  // those states in their place, or zeros. Throws kFailedPrecondition for
  // layers that are not stateful, kInvalidArgument for another number of
  // states.
  const std::vector<Variable>& states() const { return kept_; }
  void reset_states(const std::vector<Tensor>& states = {});

 protected:
  // Bidirectional: outputs of masked steps are zeros.
  friend class Bidirectional;
  void set_zero_output_for_mask() { zero_output_for_mask_ = true; }

  Recurrent(std::string name, int64_t units, int64_t gates, int64_t states,
            RecurrentOptions options);
  void MakeWeights(const TensorShape& input) override;
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;
  std::vector<Tensor> CallMany(const std::vector<Tensor>& inputs,
                               bool training) override;
  Tensor MaskFor(const std::vector<Tensor>& inputs) const override;
  RecurrentOptions ReversedOptions() const;

  // One step: `projected` is [n, gates * units], the input's product with the
  // kernel and bias. Replaces the states, of which the first is the output.
  // `drop`, unless null, is what the output is times before it comes in.
  virtual void Step(const Tensor& projected, const Tensor& drop,
                    std::vector<Tensor>* states) const = 0;
  virtual Tensor InitialBias() const;
  // What Step does not add: the bias of the input's product.
  virtual Tensor InputBias() const;

  const RecurrentOptions& options() const { return options_; }
  int64_t units() const { return units_; }
  const Variable& recurrent_kernel() const { return recurrent_kernel_; }
  const Variable& bias() const { return bias_; }

 private:
  Result Scan(const Tensor& x, const std::vector<Tensor>& initial_states,
              const Tensor& mask, bool training);
  Result RunAll(const std::vector<Tensor>& inputs, bool training);
  void MakeStates(const Tensor& x);

  int64_t units_, gates_, states_;
  RecurrentOptions options_;
  bool zero_output_for_mask_ = false;
  Module& cell_;
  Variable kernel_, recurrent_kernel_, bias_;
  std::vector<Variable> kept_;  // of a stateful layer
};

// activation(x @ kernel + h @ recurrent_kernel + bias) (Elman, 1990); one gate,
// one state, the output.
class HR_API SimpleRNN : public Recurrent {
 public:
  explicit SimpleRNN(int64_t units, RecurrentOptions options = {});
  std::shared_ptr<Recurrent> Reversed() const override;

 protected:
  void Step(const Tensor& projected, const Tensor& drop,
            std::vector<Tensor>* states) const override;
};

// Long short-term memory (Hochreiter and Schmidhuber, 1997); gates in the order
// input, forget, cell, output. States: the output and the cell.
class HR_API LSTM : public Recurrent {
 public:
  explicit LSTM(int64_t units, RecurrentOptions options = {});
  std::shared_ptr<Recurrent> Reversed() const override;

 protected:
  void Step(const Tensor& projected, const Tensor& drop,
            std::vector<Tensor>* states) const override;
  Tensor InitialBias() const override;
};

// Gated recurrent unit (Cho et al., 2014); gates in the order update, reset,
// candidate. State: the output.
class HR_API GRU : public Recurrent {
 public:
  explicit GRU(int64_t units, RecurrentOptions options = {});
  std::shared_ptr<Recurrent> Reversed() const override;

 protected:
  void Step(const Tensor& projected, const Tensor& drop,
            std::vector<Tensor>* states) const override;
  Tensor InitialBias() const override;
  Tensor InputBias() const override;
};

}  // namespace headrace::tf::layers
