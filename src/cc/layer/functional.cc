#include "headrace/layer/functional.h"

#include <algorithm>

#include "cc/compose.h"
#include "cc/layer/network.h"
#include "cc/layer/symbolic.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

Model::Model(std::vector<Symbolic> inputs, std::vector<Symbolic> outputs,
             std::string name)
    : Layer(std::move(name)),
      network_(std::make_shared<const Network>(std::move(inputs),
                                               std::move(outputs))) {
  for (size_t i = 0; i < layers().size(); ++i) {
    Own("layer-" + std::to_string(i), layers()[i]);
  }
  NameLayers(layers());
  std::vector<TensorShape> shapes;
  for (const Symbolic& x : network_->outputs) shapes.push_back(x.shape());
  set_output_shapes(std::move(shapes));
}

Model::Model(const Symbolic& input, const Symbolic& output, std::string name)
    : Model(std::vector<Symbolic>{input}, std::vector<Symbolic>{output},
            std::move(name)) {}
Model::Model(std::vector<Symbolic> inputs, const Symbolic& output,
             std::string name)
    : Model(std::move(inputs), std::vector<Symbolic>{output}, std::move(name)) {
}
Model::~Model() = default;

const std::vector<Symbolic>& Model::inputs() const { return network_->inputs; }
const std::vector<Symbolic>& Model::outputs() const {
  return network_->outputs;
}
const std::vector<std::shared_ptr<Layer>>& Model::layers() const {
  return network_->layers;
}
const std::vector<std::string>& Model::layer_names() const {
  return network_->names;
}

Layer& Model::layer(const std::string& wanted) const {
  const std::vector<std::string>& names = network_->names;
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    std::string known;
    for (const std::string& n : names) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", n);
    }
    Throw(ErrorCode::kNotFound, "No such layer: " + wanted +
                                    ". Existing layers are: [" + known + "].");
  }
  return *layers()[found - names.begin()];
}

bool Model::HasManyOutputs() const { return network_->outputs.size() > 1; }

Tensor Model::Converted(const Tensor& given, size_t index) const {
  if (index >= inputs().size()) return given;  // CallMany says so
  const Symbolic& declared = inputs()[index];
  Tensor x = internal::Cast(given, declared.dtype()).with_mask(given.mask());
  const TensorShape& wanted = declared.shape();
  if (!x.shape().known_rank || !wanted.known_rank) return x;
  const int rank = wanted.rank();
  // Keras' leniency: a column and a vector stand for each other.
  if (x.shape().rank() == rank + 1 && x.shape()[rank] == 1) {
    x = internal::SqueezeLast(x);
  } else if (x.shape().rank() == rank - 1 && wanted[rank - 1] == 1) {
    x = Op("ExpandDims", {x, internal::Int(-1)});
  }
  const TensorShape shape = x.shape();
  bool fits = shape.rank() == rank;
  // From 1: the batch may be of any size.
  for (int i = 1; fits && i < rank; ++i) {
    fits = shape[i] == wanted[i] || shape[i] < 0 || wanted[i] < 0;
  }
  if (fits) return x;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Input ", index, " of layer \"", name(),
                     "\" is incompatible with the layer: expected shape=",
                     wanted.ToString(), ", found shape=", shape.ToString()));
}

std::vector<Tensor> Model::CallMany(const std::vector<Tensor>& given,
                                    bool training) {
  if (given.size() != inputs().size()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Layer \"", name(), "\" expects ", inputs().size(),
                       " input(s), but it received ", given.size(),
                       " input tensors."));
  }
  return network_->Run(given, training);
}

Tensor Model::CallAll(const std::vector<Tensor>& given, bool training) {
  if (HasManyOutputs()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Layer \"", name(), "\" has ", outputs().size(),
                       " outputs: ask for Outputs()"));
  }
  return CallMany(given, training)[0];
}

}  // namespace headrace::tf::layers
