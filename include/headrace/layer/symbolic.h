// Tensors that are yet to come: what layers are called with to describe a
// functional model (functional.h).
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/tensor.h"

namespace headrace::tf::layers {

class Layer;

// An input of a model, or what a layer will make of others: Keras' KerasTensor.
// A handle; copies name the same tensor. Calling a layer with one infers shapes
// and makes the layer's weights, but computes nothing. Not thread-safe to make.
class HR_API Symbolic {
 public:
  Symbolic() = default;  // none; using it throws

  // Of what will come, the batch included; -1 are sizes that any call may
  // choose. As all members but the comparison these throw kInvalidArgument for
  // none.
  const TensorShape& shape() const;
  DType dtype() const;
  bool has_mask() const;
  explicit operator bool() const { return rep_ != nullptr; }
  bool operator==(const Symbolic& o) const { return rep_ == o.rep_; }

  // The output of a layer that the model takes over (a temporary), or shares:
  //   tf::layers::Symbolic h = x.Then(tf::layers::Dense(64));
  template <typename L>
  requires std::derived_from<std::remove_cvref_t<L>, Layer> &&
      (!std::is_lvalue_reference_v<L>)Symbolic Then(L&& layer) const {
    return Then(std::make_shared<std::remove_cvref_t<L>>(std::move(layer)));
  }
  // Layers that live elsewhere are called, layer(x), and must outlive the
  // model; those in a shared_ptr are kept alive by what they are called with.
  template <typename L>
  requires std::derived_from<L, Layer> Symbolic Then(std::shared_ptr<L> layer)
  const { return ThenLayer(std::move(layer)); }

  // The call that makes it; the library's own.
  struct Node;
  struct Rep;
  explicit Symbolic(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  const Rep& rep() const;

 private:
  Symbolic ThenLayer(std::shared_ptr<Layer> layer) const;

  std::shared_ptr<const Rep> rep_;
};

struct InputOptions {
  std::string name = "input";
  DType dtype = DType::kFloat32;
  int64_t batch_size = -1;  // any
};
// An input of that shape, without the batch. Throws kInvalidArgument for sizes
// under -1 and for no dtype. Each call is an input of its own.
HR_API Symbolic Input(const TensorShape& shape, InputOptions options = {});

// The output of a layer of several inputs, which is taken over or shared:
//   tf::layers::Symbolic both = Join(tf::layers::Concatenate(), {x, y});
template <typename L>
requires std::derived_from<std::remove_cvref_t<L>, Layer> &&
    (!std::is_lvalue_reference_v<L>)Symbolic
    Join(L&& layer, const std::vector<Symbolic>& inputs) {
  auto owned = std::make_shared<std::remove_cvref_t<L>>(std::move(layer));
  return (*owned)(inputs);
}

// Element by element, broadcasting as operators on tensors do; each a layer of
// its own, as operators on Keras' symbolic tensors are. Masks are dropped.
HR_API Symbolic operator+(const Symbolic& a, const Symbolic& b);
HR_API Symbolic operator-(const Symbolic& a, const Symbolic& b);
HR_API Symbolic operator*(const Symbolic& a, const Symbolic& b);
HR_API Symbolic operator/(const Symbolic& a, const Symbolic& b);
HR_API Symbolic operator+(const Symbolic& a, double b);
HR_API Symbolic operator-(const Symbolic& a, double b);
HR_API Symbolic operator*(const Symbolic& a, double b);
HR_API Symbolic operator/(const Symbolic& a, double b);
HR_API Symbolic operator+(double a, const Symbolic& b);
HR_API Symbolic operator-(double a, const Symbolic& b);
HR_API Symbolic operator*(double a, const Symbolic& b);
HR_API Symbolic operator/(double a, const Symbolic& b);
HR_API Symbolic operator-(const Symbolic& a);

}  // namespace headrace::tf::layers
