// The base of layers, and layers one after another.
#include "cc/compose.h"
#include "graph/builder.h"
#include "headrace/layers.h"

namespace headrace::tf::layers {

using internal::Throw;

Layer::Layer(std::string name, DType dtype)
    : name_(std::move(name)), dtype_(dtype) {}

Tensor Layer::Prepared(const Tensor& x) const {
  const TensorShape shape = x.shape();
  if (rank_ > 0 && shape.known_rank &&
      (exact_rank_ ? shape.rank() != rank_ : shape.rank() < rank_)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Input 0 of layer \"", name_,
                       "\" is incompatible with the layer: expected ",
                       exact_rank_ ? "ndim=" : "min_ndim=", rank_,
                       ", found ndim=", shape.rank(),
                       ". Full shape received: ", shape.ToString()));
  }
  return internal::IsFloating(x.dtype()) ? internal::Cast(x, dtype_) : x;
}

Tensor Layer::operator()(const Tensor& x, bool training) {
  const Tensor input = Prepared(x);
  if (!built_) {
    internal::Outside outside;
    MakeWeights(input.shape());
    built_ = true;
  }
  return Call(input, training);
}

TensorShape Layer::Build(const TensorShape& input) {
  GraphBuilder scratch(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&scratch);
  StopRecording quiet;
  const Value x = internal::Check(scratch.AddPlaceholder(
      "input", internal::Core(dtype_), internal::Core(input), nullptr));
  return (*this)(internal::Access::Wrap(x)).shape();
}

Variable Layer::AddWeight(const std::string& name, const TensorShape& shape,
                          const Initializer& initializer, bool trainable) {
  internal::Outside outside;
  return Track(name, Variable(initializer(shape, dtype_), name, trainable));
}

Sequential::Sequential() : Layer("sequential") {}

void Sequential::AddLayer(std::shared_ptr<Layer> layer) {
  if (layer == nullptr) {
    Throw(ErrorCode::kInvalidArgument, "The added layer must not be null.");
  }
  Own("layer-" + std::to_string(layers_.size()), layer);
  layers_.push_back(std::move(layer));
  named_ = false;
}

// Layers with weights come first where they stand, so that checkpoints call
// their values by that name.
void Sequential::NameLayers() {
  size_t with_weights = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string plain = "layer-" + std::to_string(i);
    DropName(plain);
    if (!layers_[i]->variables().empty()) {
      AddName("layer_with_weights-" + std::to_string(with_weights++),
              *layers_[i]);
    }
    AddName(plain, *layers_[i]);
  }
  named_ = true;
}

Tensor Sequential::Call(const Tensor& x, bool training) {
  if (layers_.empty()) {
    Throw(ErrorCode::kFailedPrecondition, "a Sequential without layers");
  }
  Tensor out = x;
  for (const auto& layer : layers_) out = (*layer)(out, training);
  if (!named_) NameLayers();
  return out;
}

}  // namespace headrace::tf::layers
