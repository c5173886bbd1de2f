// The base of layers, and layers one after another.
#include <set>

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
  if (!internal::IsFloating(x.dtype()) || x.dtype() == dtype_) return x;
  return internal::Cast(x, dtype_).with_mask(x.mask());
}

Tensor Layer::operator()(const Tensor& x, bool training) {
  return (*this)(std::vector<Tensor>{x}, training);
}

std::vector<Tensor> Layer::Ready(const std::vector<Tensor>& given) {
  if (given.empty()) {
    Throw(ErrorCode::kInvalidArgument, name_ + " was called without inputs");
  }
  std::vector<Tensor> inputs;
  for (const Tensor& x : given) inputs.push_back(Prepared(x));
  if (!built_) {
    internal::Outside outside;
    std::vector<TensorShape> shapes;
    for (const Tensor& x : inputs) shapes.push_back(x.shape());
    MakeAllWeights(shapes);
    built_ = true;
  }
  return inputs;
}

Tensor Layer::operator()(const std::vector<Tensor>& given, bool training) {
  const std::vector<Tensor> inputs = Ready(given);
  const Tensor out = CallAll(inputs, training);
  if (out.mask()) return out;
  const Tensor mask = MaskFor(inputs);
  return mask ? out.with_mask(mask) : out;
}

Tensor Layer::Call(const Tensor& x, bool training) {
  Throw(ErrorCode::kUnimplemented, name_ + " does not say what it computes");
}

Tensor Layer::CallAll(const std::vector<Tensor>& inputs, bool training) {
  if (inputs.size() != 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Layer \"", name_, "\" expects 1 input(s), but it ",
                       "received ", inputs.size(), " input tensors."));
  }
  return Call(inputs[0], training);
}

void Layer::MakeAllWeights(const std::vector<TensorShape>& inputs) {
  MakeWeights(inputs[0]);
}

Tensor Layer::MaskFor(const std::vector<Tensor>& inputs) const {
  return supports_masking_ ? inputs[0].mask() : Tensor();
}

TensorShape Layer::Build(const TensorShape& input, DType input_dtype) {
  return Build(std::vector<TensorShape>{input}, input_dtype);
}

TensorShape Layer::Build(const std::vector<TensorShape>& inputs,
                         DType input_dtype) {
  GraphBuilder scratch(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  EmitterScope emit(&scratch);
  StopRecording quiet;
  const DType dtype = input_dtype == DType::kInvalid ? dtype_ : input_dtype;
  std::vector<Tensor> places;
  for (const TensorShape& shape : inputs) {
    places.push_back(
        internal::Access::Wrap(internal::Check(scratch.AddPlaceholder(
            "input", internal::Core(dtype), internal::Core(shape), nullptr))));
  }
  return (*this)(places).shape();
}

Variable Layer::AddWeight(const std::string& name, const TensorShape& shape,
                          const WeightOptions& options, Module* owner) {
  internal::Outside outside;
  const Variable weight =
      (owner != nullptr ? *owner : *this)
          .Track(name, Variable(options.initializer(shape, dtype_), name,
                                options.trainable, options.constraint));
  if (options.regularizer) {
    AddLoss([weight, penalty = options.regularizer] {
      return penalty(weight.value());
    });
  }
  return weight;
}

Variable Layer::AddWeight(const std::string& name, const TensorShape& shape,
                          const Initializer& initializer, bool trainable) {
  return AddWeight(name, shape, WeightOptions{initializer, {}, {}, trainable});
}

void Layer::AddLoss(std::function<Tensor()> loss) {
  losses_.push_back(std::move(loss));
}

std::vector<Tensor> Layer::losses() const {
  std::vector<Tensor> all;
  std::set<const Module*> seen;
  const std::function<void(const Module*)> gather = [&](const Module* m) {
    if (!seen.insert(m).second) return;
    if (const auto* layer = dynamic_cast<const Layer*>(m)) {
      for (const auto& loss : layer->losses_) all.push_back(loss());
    }
    for (const Named& child : m->children()) {
      if (child.module != nullptr) gather(child.module);
    }
  };
  gather(this);
  return all;
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
