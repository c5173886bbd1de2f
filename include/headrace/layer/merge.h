// Layers that join several inputs: tf.keras.layers.
//
//   tf::layers::Add add;
//   tf::Tensor y = add({x, block(x)});
//
// Inputs of fewer axes get axes of 1 behind the batch; sizes must be equal or
// 1, else kInvalidArgument. A step of the output is masked where any input's
// mask hides it.
#pragma once

#include <string>
#include <vector>

#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

// What they share. One input is taken too, but by those of two. No weights; the
// inputs must have one dtype.
class HR_API Merge : public Layer {
 protected:
  // `count`: how many inputs; 0: any number.
  explicit Merge(std::string name, size_t count = 0);
  void MakeAllWeights(const std::vector<TensorShape>& inputs) override;
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;
  Tensor MaskFor(const std::vector<Tensor>& inputs) const override;
  void CheckCount(size_t count) const;
  virtual void CheckShapes(const std::vector<TensorShape>& shapes) const;
  virtual Tensor Merged(const std::vector<Tensor>& inputs) const = 0;

 private:
  size_t count_;
};

// The sum of the inputs, added from the first on.
class HR_API Add : public Merge {
 public:
  Add() : Merge("add") {}

 protected:
  Tensor Merged(const std::vector<Tensor>& inputs) const override;
};
// The first less the second.
class HR_API Subtract : public Merge {
 public:
  Subtract() : Merge("subtract", 2) {}

 protected:
  Tensor Merged(const std::vector<Tensor>& inputs) const override;
};
// The product of the inputs.
class HR_API Multiply : public Merge {
 public:
  Multiply() : Merge("multiply") {}

 protected:
  Tensor Merged(const std::vector<Tensor>& inputs) const override;
};
// The sum over the number of inputs.
class HR_API Average : public Merge {
 public:
  Average() : Merge("average") {}

 protected:
  Tensor Merged(const std::vector<Tensor>& inputs) const override;
};
// The greatest of the inputs, element by element.
class HR_API Maximum : public Merge {
 public:
  Maximum() : Merge("maximum") {}

 protected:
  Tensor Merged(const std::vector<Tensor>& inputs) const override;
};
// The smallest of the inputs, element by element.
class HR_API Minimum : public Merge {
 public:
  Minimum() : Merge("minimum") {}

 protected:
  Tensor Merged(const std::vector<Tensor>& inputs) const override;
};

// One behind the other along an axis (the batch is 0); the other sizes must be
// equal, also those of 1, and so must the numbers of axes.
class HR_API Concatenate : public Merge {
 public:
  explicit Concatenate(int axis = -1);

 protected:
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;
  Tensor MaskFor(const std::vector<Tensor>& inputs) const override;
  void CheckShapes(const std::vector<TensorShape>& shapes) const override;
  Tensor Merged(const std::vector<Tensor>& inputs) const override;

 private:
  int axis_;
};

// The products of two inputs of a batch, summed over an axis of each: [n, a, k]
// and [n, k, b] with axes 2 and 1 to [n, a, b]; two vectors [n, k] to [n, 1].
// With `normalize` the inputs first have an L2 norm of 1 along it: the cosine.
// Inputs have 2 to 8 axes; axis 0, the batch, is kInvalidArgument, as are sizes
// that differ. The output has no mask.
class HR_API Dot : public Merge {
 public:
  Dot(int axis_of_first, int axis_of_second, bool normalize = false);

 protected:
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;
  Tensor MaskFor(const std::vector<Tensor>& inputs) const override;
  void CheckShapes(const std::vector<TensorShape>& shapes) const override;
  Tensor Merged(const std::vector<Tensor>& inputs) const override;

 private:
  int axes_[2];
  bool normalize_;
};

}  // namespace headrace::tf::layers
