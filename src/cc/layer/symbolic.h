// What is behind symbolic tensors.
#pragma once

#include <memory>
#include <vector>

#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

// One call of a layer. Layers that live elsewhere are not owned.
struct Symbolic::Node {
  std::shared_ptr<Layer> layer;
  std::vector<Symbolic> inputs;  // none: an Input
  bool all = false;              // called for all outputs
  size_t count = 1;              // of outputs
  int64_t serial = 0;            // later calls have greater ones
};

struct Symbolic::Rep {
  std::shared_ptr<const Node> node;  // null: of Layer::Build
  size_t index = 0;                  // among the outputs
  TensorShape shape;
  DType dtype = DType::kFloat32;
  bool has_mask = false;
  TensorShape mask_shape;
};

}  // namespace headrace::tf::layers

namespace headrace::tf::internal {

// A symbolic tensor that no layer makes.
layers::Symbolic NewPlace(const TensorShape& shape, DType dtype);

}  // namespace headrace::tf::internal
