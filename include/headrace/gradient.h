// Gradients as tapes give them and optimizers take them.
#pragma once

#include <initializer_list>
#include <vector>

#include "headrace/tensor.h"

namespace headrace::tf {

// A gradient: a tensor, or some of the rows of one, all else being zeros
// (tf.IndexedSlices), as that of a table whose rows were looked up. Null where
// nothing flows. Used as a Tensor it is one, made dense at that moment.
// Immutable; copies are cheap.
class HR_API Gradient {
 public:
  Gradient() = default;
  Gradient(const Tensor& dense) : dense_(dense) {}  // NOLINT
  // values[i] is added to row indices[i] of a tensor of shape dense_shape:
  // values is [n, row...], indices an int32 or int64 vector [n], in any order
  // and with repeats, dense_shape an integer vector, which may be null where
  // the gradient stays slices. Nothing is checked here, but where the slices
  // are used.
  Gradient(Tensor values, Tensor indices, Tensor dense_shape)
      : values_(std::move(values)),
        indices_(std::move(indices)),
        dense_shape_(std::move(dense_shape)) {}

  explicit operator bool() const { return dense_ || values_; }
  bool is_slices() const { return static_cast<bool>(values_); }
  // Of slices; null for others.
  const Tensor& values() const { return values_; }
  const Tensor& indices() const { return indices_; }
  const Tensor& dense_shape() const { return dense_shape_; }

  // The whole tensor; null for none. Slices of the same row are summed. Costs
  // the memory of the whole table: optimizers that have a rule for slices do
  // not call it. Throws kInvalidArgument for slices without a dense_shape.
  Tensor dense() const;
  operator Tensor() const { return dense(); }  // NOLINT
  template <typename T>
  // As Tensor's, of the dense gradient.
  T item() const {
    return dense().item<T>();
  }
  template <typename T>
  std::vector<T> vector() const {
    return dense().vector<T>();
  }

 private:
  Tensor dense_, values_, indices_, dense_shape_;
};

// One a variable, in their order, null where nothing flows. A list of tensors
// is one, and the other way (made dense).
class HR_API Gradients : public std::vector<Gradient> {
 public:
  using std::vector<Gradient>::vector;
  Gradients(std::initializer_list<Gradient> list)
      : std::vector<Gradient>(list) {}
  Gradients(const std::vector<Tensor>& dense)  // NOLINT
      : std::vector<Gradient>(dense.begin(), dense.end()) {}
  operator std::vector<Tensor>() const {  // NOLINT
    return std::vector<Tensor>(begin(), end());
  }
};

}  // namespace headrace::tf
