#include <map>

#include "cc/compose.h"
#include "headrace/layer/layers.h"

namespace headrace::tf {
namespace {

using internal::Number;
using internal::Op;

template <const char* Name>
Tensor Unary(const Tensor& x) {
  return Op(Name, {x});
}

Tensor Softmax(const Tensor& x) {
  if (x.shape().rank() == 1) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Cannot apply softmax to a tensor that is 1D. Received "
                    "input: " +
                        x.ToString());
  }
  return Op("Softmax", {x});
}

Tensor Silu(const Tensor& x) {
  if (CurrentEmitter()->is_eager()) return Op("_Silu", {x});
  return x * Op("Sigmoid", {x});
}

Tensor Gelu(const Tensor& x) {
  // Eagerly one op and one pass over memory. In a graph the formula in
  // upstream's ops, which the engine fuses: a saved graph holds no op of ours.
  if (CurrentEmitter()->is_eager()) return Op("_GeluErf", {x});
  const Tensor inner = Op("Erf", {x / 1.4142135623730951});
  return 0.5 * x * (1.0 + inner);
}

constexpr char kRelu[] = "Relu", kRelu6[] = "Relu6", kElu[] = "Elu",
               kSelu[] = "Selu", kExp[] = "Exp", kSigmoid[] = "Sigmoid",
               kTanh[] = "Tanh", kSoftplus[] = "Softplus",
               kSoftsign[] = "Softsign", kLogSoftmax[] = "LogSoftmax";

using Function = Tensor (*)(const Tensor&);

const std::map<std::string, Function>& Named() {
  static const auto* const named = new std::map<std::string, Function>{
      {"relu", Unary<kRelu>},
      {"relu6", Unary<kRelu6>},
      {"leaky_relu",
       [](const Tensor& x) {
         return Op("LeakyRelu", {x}, {{"alpha", 0.2f}});
       }},
      {"elu", Unary<kElu>},
      {"selu", Unary<kSelu>},
      {"gelu", Gelu},
      {"exponential", Unary<kExp>},
      {"sigmoid", Unary<kSigmoid>},
      {"hard_sigmoid",
       [](const Tensor& x) {
         // Keras 2's line; Keras 3 has x / 6 + 0.5.
         return internal::ClipByValue(0.2 * x + 0.5, 0, 1);
       }},
      {"softmax", Softmax},
      {"log_softmax", Unary<kLogSoftmax>},
      {"softplus", Unary<kSoftplus>},
      {"softsign", Unary<kSoftsign>},
      {"swish", Silu},
      {"silu", Silu},
      {"tanh", Unary<kTanh>},
      {"mish",
       [](const Tensor& x) { return x * Op("Tanh", {Op("Softplus", {x})}); }},
  };
  return *named;
}

}  // namespace

ActivationFunction::ActivationFunction(const std::string& name) {
  if (name == "linear" || name.empty()) return;
  const auto found = Named().find(name);
  if (found == Named().end()) {
    internal::Throw(ErrorCode::kInvalidArgument,
                    "Unknown activation function: '" + name + "'.");
  }
  function_ = found->second;
}

namespace layers {

Activation::Activation(ActivationFunction function)
    : Layer("activation"), function_(std::move(function)) {
  set_supports_masking();
}
Tensor Activation::Call(const Tensor& x, bool training) { return function_(x); }

}  // namespace layers
}  // namespace headrace::tf
