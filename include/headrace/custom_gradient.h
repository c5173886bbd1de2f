// Functions with gradients of their own: tf.custom_gradient.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "headrace/tensor.h"

namespace headrace::tf {

// A call whose gradient is asked for.
struct GradientCall {
  // What the function was called with, and what it gave.
  std::vector<Tensor> inputs, outputs;
  // One an output, never null: zeros where nothing depends on the output.
  std::vector<Tensor> gradients;
};

// A function that tapes see as one op with the gradient given:
//
//   const tf::CustomGradient log1pexp(
//       [](const auto& x) {
//         return std::vector<tf::Tensor>{tf::Log(tf::Exp(x[0]) + 1.0)};
//       },
//       [](const tf::GradientCall& call) {
//         return std::vector<tf::Tensor>{call.gradients[0] *
//                                        tf::Sigmoid(call.inputs[0])};
//       });
//   const tf::Tensor y = log1pexp({x})[0];
//
// The backward function gives one gradient an input, null where there is none.
// It may run at any later time and in any graph, so it must use nothing of the
// forward one's but what the call holds; gradients of gradients flow through
// what it computes. Works eagerly and in traced functions, which keep the
// backward function for the life of the process. Copies are the same function.
// Thread-safe where the two functions are. Calls throw kInvalidArgument where
// the function reads trainable variables (pass their values: they would have no
// gradient), and the gradient where the number of gradients is wrong.
class HR_API CustomGradient {
 public:
  using Forward =
      std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  using Backward = std::function<std::vector<Tensor>(const GradientCall&)>;
  // Throws kInvalidArgument where one of the two is none.
  CustomGradient(Forward forward, Backward backward);

  // Calls the forward function at once. Its results are handles of their own,
  // also where it returns an input as it is, so that tapes tell the two apart.
  // kInvalidArgument for a forward function without results.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The same of N tensors that give one: the backward function gets the gradient
// of the result, then the N inputs, and gives N gradients. Called as f(a, b).
//   auto straight = tf::custom_gradient<1>(
//       [](auto& x) { return tf::Round(x[0]); },
//       [](const tf::Tensor& g, auto& x) { return std::vector{g}; });
template <int N>
class TypedCustomGradient {
 public:
  template <typename F, typename G>
  TypedCustomGradient(F forward, G backward)
      : function_(
            [forward](const std::vector<Tensor>& x) {
              return std::vector<Tensor>{forward(x)};
            },
            [backward](const GradientCall& call) {
              return std::vector<Tensor>(
                  backward(call.gradients[0], call.inputs));
            }) {}
  template <typename... Args>
  Tensor operator()(const Args&... args) const {
    static_assert(sizeof...(Args) == N, "one argument a tensor");
    return function_({Tensor(args)...})[0];
  }

 private:
  CustomGradient function_;
};
template <int N, typename F, typename G>
TypedCustomGradient<N> custom_gradient(F forward, G backward) {
  return TypedCustomGradient<N>(std::move(forward), std::move(backward));
}

}  // namespace headrace::tf
