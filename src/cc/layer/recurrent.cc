#include "headrace/layer/recurrent.h"

#include "cc/compose.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

namespace {

double Clipped(double rate) { return std::min(1.0, std::max(0.0, rate)); }

}  // namespace

Recurrent::Recurrent(std::string name, int64_t units, int64_t gates,
                     int64_t states, RecurrentOptions options)
    : Layer(std::move(name)),
      units_(units),
      gates_(gates),
      states_(states),
      options_(std::move(options)),
      cell_(Child("cell")) {
  if (units <= 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Received an invalid value for argument `units`, "
                       "expected a positive integer, got ",
                       units, "."));
  }
  options_.dropout = Clipped(options_.dropout);
  options_.recurrent_dropout = Clipped(options_.recurrent_dropout);
  if (options_.dropout == 1 || options_.recurrent_dropout == 1) {
    Throw(ErrorCode::kInvalidArgument, "dropout must be less than 1");
  }
  set_input_rank(3, /*exact=*/true);
  set_checked_inputs(1);  // states follow
  set_activity_regularizer(options_.activity_regularizer);
}

void Recurrent::MakeWeights(const TensorShape& input) {
  if (!input.known_rank || input.dims.back() < 0) {
    Throw(
        ErrorCode::kInvalidArgument,
        "the number of features of a recurrent layer's inputs must be known: " +
            input.ToString());
  }
  const int64_t wide = units_ * gates_;
  const RecurrentOptions& o = options_;
  kernel_ = AddWeight(
      "kernel", {input.dims.back(), wide},
      {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint},
      &cell_);
  recurrent_kernel_ =
      AddWeight("recurrent_kernel", {units_, wide},
                {o.recurrent_initializer, o.recurrent_regularizer,
                 o.recurrent_constraint},
                &cell_);
  if (!o.use_bias) return;
  const Initializer initial(
      [this](const TensorShape&, DType) { return InitialBias(); });
  bias_ = AddWeight("bias", {},
                    {initial, o.bias_regularizer, o.bias_constraint}, &cell_);
}

Tensor Recurrent::InitialBias() const {
  return options_.bias_initializer({units_ * gates_}, dtype());
}

Tensor Recurrent::InputBias() const { return bias_; }

Tensor Recurrent::CallAll(const std::vector<Tensor>& inputs, bool training) {
  return RunAll(inputs, training).output;
}

std::vector<Tensor> Recurrent::CallMany(const std::vector<Tensor>& inputs,
                                        bool training) {
  Result result = RunAll(inputs, training);
  std::vector<Tensor> all = {std::move(result.output)};
  for (Tensor& state : result.states) all.push_back(std::move(state));
  return all;
}

Recurrent::Result Recurrent::RunAll(const std::vector<Tensor>& inputs,
                                    bool training) {
  const std::vector<Tensor> states(inputs.begin() + 1, inputs.end());
  if (!states.empty() && states.size() != static_cast<size_t>(states_)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat(name(), " has ", states_, " states, but was given ",
                       states.size()));
  }
  return Scan(inputs[0], states, inputs[0].mask(), training);
}

void Recurrent::MakeStates(const Tensor& x) {
  if (!kept_.empty()) return;
  const TensorShape shape = x.shape();
  if (shape[0] < 0) {
    Throw(ErrorCode::kInvalidArgument,
          "If a RNN is stateful, it needs to know its batch size. Specify the "
          "batch size of your input tensors: their shape is " +
              shape.ToString());
  }
  internal::Outside outside;
  for (int64_t i = 0; i < states_; ++i) {
    kept_.emplace_back(internal::Full(dtype(), {shape[0], units_}, 0), "state",
                       /*trainable=*/false);
  }
}

void Recurrent::reset_states(const std::vector<Tensor>& states) {
  if (!options_.stateful) {
    Throw(ErrorCode::kFailedPrecondition, "Layer must be stateful.");
  }
  if (!states.empty() && states.size() != kept_.size()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Layer ", name(), " expects ", kept_.size(),
                       " states, but it received ", states.size(),
                       " state values."));
  }
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Variable& v = kept_[i];
    v.assign(states.empty() ? internal::Full(v.dtype(), v.shape(), 0)
                            : states[i]);
  }
}

Tensor Recurrent::MaskFor(const std::vector<Tensor>& inputs) const {
  return options_.return_sequences ? inputs[0].mask() : Tensor();
}

RecurrentOptions Recurrent::ReversedOptions() const {
  RecurrentOptions o = options_;
  o.go_backwards = !o.go_backwards;
  o.kernel_initializer = o.kernel_initializer.Renewed();
  o.recurrent_initializer = o.recurrent_initializer.Renewed();
  o.bias_initializer = o.bias_initializer.Renewed();
  return o;
}

Recurrent::Result Recurrent::Run(const Tensor& x,
                                 const std::vector<Tensor>& initial_states,
                                 const Tensor& mask, bool training) {
  std::vector<Tensor> inputs = {mask ? x.with_mask(mask) : x};
  inputs.insert(inputs.end(), initial_states.begin(), initial_states.end());
  std::vector<Tensor> found = Outputs(inputs, training);
  return {found[0], {found.begin() + 1, found.end()}};
}

Recurrent::Result Recurrent::Scan(const Tensor& given,
                                  const std::vector<Tensor>& initial_states,
                                  const Tensor& given_mask, bool training) {
  Tensor x = internal::Transpose(given, {1, 0, 2}), mask;
  if (given_mask) mask = internal::Transpose(given_mask, {1, 0});
  if (options_.go_backwards) {
    x = Op("ReverseV2", {x, internal::Ints({0})});
    if (mask) mask = Op("ReverseV2", {mask, internal::Ints({0})});
  }
  const auto size_of = [](const Tensor& t, int64_t i) {
    return Op("StridedSlice", {internal::ShapeOf(t), internal::Ints({i}),
                               internal::Ints({i + 1}), internal::Ints({1})});
  };
  const auto wide = [&](int64_t n) {
    return Op("ConcatV2",
              {size_of(x, 1), internal::Ints({n}), internal::Int(0)},
              {{"N", 2}});
  };
  std::vector<Tensor> states = initial_states;
  if (options_.stateful) {
    MakeStates(given);
    if (states.empty()) states.assign(kept_.begin(), kept_.end());
  }
  while (states.size() < static_cast<size_t>(states_)) {
    states.push_back(Op("Fill", {wide(units_), internal::Number(dtype(), 0)}));
  }
  Tensor drop;
  const auto choices = [&](double rate, int64_t n) {
    const Tensor shape = wide(n);
    return internal::Dropped(Op("Fill", {shape, internal::Number(dtype(), 1)}),
                             rate, shape, {});
  };
  if (training && options_.dropout > 0) {
    x = x * choices(options_.dropout, kernel_.shape()[0]);
  }
  if (training && options_.recurrent_dropout > 0) {
    drop = choices(options_.recurrent_dropout, units_);
  }
  Tensor projected = internal::TimesKernel(x, kernel_);
  // Products with the kernel for all steps at once; only those with the
  // recurrent kernel are left to the steps.
  if (bias_) projected = projected + InputBias();
  internal::ScanResult result = internal::ScanOver(
      projected, mask, std::move(states), options_.return_sequences,
      [&](const Tensor& row, std::vector<Tensor>* now) {
        Step(row, drop, now);
      });
  Result out{std::move(result.last), std::move(result.states)};
  for (size_t i = 0; i < kept_.size(); ++i) kept_[i].assign(out.states[i]);
  if (options_.return_sequences) {
    Tensor every = result.every;
    if (zero_output_for_mask_ && mask) {
      every = Op("SelectV2", {Op("ExpandDims", {mask, internal::Int(-1)}),
                              every, Op("ZerosLike", {every})});
    }
    out.output = internal::Transpose(every, {1, 0, 2});
  }
  return out;
}

SimpleRNN::SimpleRNN(int64_t units, RecurrentOptions options)
    : Recurrent("simple_rnn", units, 1, 1, std::move(options)) {}

std::shared_ptr<Recurrent> SimpleRNN::Reversed() const {
  return std::make_shared<SimpleRNN>(units(), ReversedOptions());
}

void SimpleRNN::Step(const Tensor& projected, const Tensor& drop,
                     std::vector<Tensor>* states) const {
  Tensor& h = (*states)[0];
  const Tensor mixed = drop ? h * drop : h;
  h = options().activation(projected +
                           Op("MatMul", {mixed, recurrent_kernel()}));
}

LSTM::LSTM(int64_t units, RecurrentOptions options)
    : Recurrent("lstm", units, 4, 2, std::move(options)) {}

std::shared_ptr<Recurrent> LSTM::Reversed() const {
  return std::make_shared<LSTM>(units(), ReversedOptions());
}

Tensor LSTM::InitialBias() const {
  if (!options().unit_forget_bias) return Recurrent::InitialBias();
  const Initializer& plain = options().bias_initializer;
  return Op(
      "ConcatV2",
      {plain({units()}, dtype()), initializers::Ones()({units()}, dtype()),
       plain({2 * units()}, dtype()), internal::Int(0)},
      {{"N", 3}});
}

void LSTM::Step(const Tensor& projected, const Tensor& drop,
                std::vector<Tensor>* states) const {
  Tensor &h = (*states)[0], &c = (*states)[1];
  const Tensor mixed = drop ? h * drop : h;
  const Tensor z = projected + Op("MatMul", {mixed, recurrent_kernel()});
  const std::vector<Tensor> gates = internal::Split(z, 4, 1);
  const ActivationFunction& inner = options().recurrent_activation;
  const ActivationFunction& outer = options().activation;
  c = inner(gates[1]) * c + inner(gates[0]) * outer(gates[2]);
  h = inner(gates[3]) * outer(c);
}

GRU::GRU(int64_t units, RecurrentOptions options)
    : Recurrent("gru", units, 3, 1, std::move(options)) {}

std::shared_ptr<Recurrent> GRU::Reversed() const {
  return std::make_shared<GRU>(units(), ReversedOptions());
}

Tensor GRU::InitialBias() const {
  const int64_t wide = 3 * units();
  return options().bias_initializer(
      options().reset_after ? TensorShape{2, wide} : TensorShape{wide},
      dtype());
}

namespace {

Tensor Row(const Tensor& table, int64_t i) {
  return Op("StridedSlice",
            {table, internal::Ints({i}), internal::Ints({i + 1}),
             internal::Ints({1})},
            {{"shrink_axis_mask", 1}});
}

Tensor Columns(const Tensor& table, int64_t from, int64_t size) {
  return Op("Slice",
            {table, internal::Ints({0, from}), internal::Ints({-1, size})});
}

}  // namespace

Tensor GRU::InputBias() const {
  return options().reset_after ? Row(bias(), 0) : bias().value();
}

void GRU::Step(const Tensor& projected, const Tensor& drop,
               std::vector<Tensor>* states) const {
  Tensor& h = (*states)[0];
  const Tensor mixed = drop ? h * drop : h;
  const Tensor kernel = recurrent_kernel();
  const ActivationFunction& inner = options().recurrent_activation;
  const std::vector<Tensor> x = internal::Split(projected, 3, 1);
  Tensor z, candidate;
  if (options().reset_after) {
    Tensor state = Op("MatMul", {mixed, kernel});
    if (bias()) state = state + Row(bias(), 1);
    const std::vector<Tensor> s = internal::Split(state, 3, 1);
    z = inner(x[0] + s[0]);
    const Tensor r = inner(x[1] + s[1]);
    candidate = options().activation(x[2] + r * s[2]);
  } else {
    const int64_t n = units();
    const std::vector<Tensor> s =
        internal::Split(Op("MatMul", {mixed, Columns(kernel, 0, 2 * n)}), 2, 1);
    z = inner(x[0] + s[0]);
    const Tensor r = inner(x[1] + s[1]);
    candidate = options().activation(
        x[2] + Op("MatMul", {r * mixed, Columns(kernel, 2 * n, n)}));
  }
  h = z * h + (1.0 - z) * candidate;
}

}  // namespace headrace::tf::layers
