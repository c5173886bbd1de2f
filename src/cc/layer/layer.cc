// The base of layers, and layers one after another.
#include <atomic>
#include <set>

#include "cc/compose.h"
#include "cc/layer/symbolic.h"
#include "graph/builder.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

Layer::Layer(std::string name, DType dtype)
    : name_(std::move(name)), dtype_(dtype) {}

void Layer::CheckInputRank(const Tensor& x, size_t index) const {
  if (rank_ == 0 || index >= checked_inputs_) return;
  const TensorShape shape = x.shape();
  if (!shape.known_rank) return;
  if (exact_rank_ ? shape.rank() == rank_ : shape.rank() >= rank_) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Input ", index, " of layer \"", name_,
                     "\" is incompatible with the layer: expected ",
                     exact_rank_ ? "ndim=" : "min_ndim=", rank_,
                     ", found ndim=", shape.rank(),
                     ". Full shape received: ", shape.ToString()));
}

Tensor Layer::Converted(const Tensor& x, size_t index) const {
  if (!internal::IsFloating(x.dtype()) || x.dtype() == dtype_) return x;
  return internal::Cast(x, dtype_).with_mask(x.mask());
}

namespace {

thread_local int depth = 0;
// Layers that hold losses of calls: nothing to clear while there are none.
std::atomic<int64_t> holding{0};

// The layers from `m` down, each once, parents first.
void ForEachLayer(const Module& m, const std::function<void(Layer&)>& fn) {
  std::set<const Module*> seen;
  const std::function<void(const Module*)> visit = [&](const Module* m) {
    if (!seen.insert(m).second) return;
    if (const auto* layer = dynamic_cast<const Layer*>(m)) {
      fn(const_cast<Layer&>(*layer));
    }
    for (const Module::Named& child : m->children()) {
      if (child.module != nullptr) visit(child.module);
    }
  };
  visit(&m);
}

// Whether a value can be used by what runs or is recorded now.
bool IsAtHand(const Tensor& t) {
  const Value& v = internal::Access::ValueOf(t);
  if (!v.is_symbolic()) return true;
  const auto* builder = dynamic_cast<GraphBuilder*>(CurrentEmitter());
  return builder != nullptr && builder->graph() == v.graph();
}

}  // namespace

Layer::Entered::Entered(Layer* layer) {
  // The outermost call alone clears: inner layers add to what belongs to it.
  // Nothing is walked while no layer holds a loss.
  if (depth++ == 0 && holding > 0) layer->ClearCallLosses();
}
Layer::Entered::~Entered() { --depth; }

void Layer::ClearCallLosses() {
  ForEachLayer(*this, [](Layer& layer) {
    if (layer.call_losses_.empty()) return;
    layer.call_losses_.clear();
    --holding;
  });
}

Layer::~Layer() {
  if (!call_losses_.empty()) --holding;
}

Layer::Layer(Layer&& o)
    : Module(std::move(o)),
      name_(std::move(o.name_)),
      dtype_(o.dtype_),
      rank_(o.rank_),
      exact_rank_(o.exact_rank_),
      supports_masking_(o.supports_masking_),
      built_(o.built_),
      checked_inputs_(o.checked_inputs_),
      losses_(std::move(o.losses_)),
      call_losses_(std::exchange(o.call_losses_, {})),
      activity_regularizer_(std::move(o.activity_regularizer_)),
      output_shapes_(std::move(o.output_shapes_)) {}

Tensor Layer::operator()(const Tensor& x, bool training) {
  return (*this)(std::vector<Tensor>{x}, training);
}

std::vector<Tensor> Layer::Ready(const std::vector<Tensor>& given) {
  if (given.empty()) {
    Throw(ErrorCode::kInvalidArgument, name_ + " was called without inputs");
  }
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    inputs.push_back(Converted(given[i], i));
    CheckInputRank(inputs[i], i);
  }
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
  const Entered entered(this);
  const std::vector<Tensor> inputs = Ready(given);
  return Finished(inputs, {CallAll(inputs, training)})[0];
}

std::vector<Tensor> Layer::Outputs(const std::vector<Tensor>& given,
                                   bool training) {
  const Entered entered(this);
  const std::vector<Tensor> inputs = Ready(given);
  return Finished(inputs, CallMany(inputs, training));
}

std::vector<Tensor> Layer::ModelOutputs(const std::vector<Tensor>& inputs,
                                        bool training) {
  if (HasManyOutputs()) return Outputs(inputs, training);
  return {(*this)(inputs, training)};
}

std::vector<Tensor> Layer::Finished(const std::vector<Tensor>& inputs,
                                    std::vector<Tensor> outputs) {
  if (activity_regularizer_) {
    Tensor batch;
    for (const Tensor& out : outputs) {
      if (!batch) {
        const Tensor size = Op("StridedSlice",
                               {internal::ShapeOf(out), internal::Ints({0}),
                                internal::Ints({1}), internal::Ints({1})},
                               {{"shrink_axis_mask", 1}});
        batch = internal::Cast(size, out.dtype());
      }
      // By the batch's size, as Keras: the penalty does not depend on it then.
      AddLoss(activity_regularizer_(out) / batch);
    }
  }
  // Shapes of the first call: what Summary prints.
  if (output_shapes_.empty()) {
    for (const Tensor& out : outputs) output_shapes_.push_back(out.shape());
  }
  // What Call itself gave stands above the layer's rule.
  if (!outputs[0].mask()) {
    const Tensor mask = MaskFor(inputs);
    if (mask) outputs[0] = outputs[0].with_mask(mask);
  }
  return outputs;
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

std::vector<Tensor> Layer::CallMany(const std::vector<Tensor>& inputs,
                                    bool training) {
  return {CallAll(inputs, training)};
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
  const DType dtype = input_dtype == DType::kInvalid ? dtype_ : input_dtype;
  std::vector<Symbolic> places;
  for (const TensorShape& shape : inputs) {
    places.push_back(internal::NewPlace(shape, dtype));
  }
  return Described(places, HasManyOutputs())[0].shape();
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

void Layer::AddLoss(const Tensor& loss) {
  if (call_losses_.empty()) ++holding;
  call_losses_.push_back(loss);
}

std::vector<Tensor> Layer::losses() const {
  std::vector<Tensor> all;
  ForEachLayer(*this, [&](Layer& layer) {
    for (const Tensor& loss : layer.call_losses_) {
      // A loss that was made while a function was traced is of that function's
      // graph: outside it has no value.
      if (IsAtHand(loss)) all.push_back(loss);
    }
    for (const auto& loss : layer.losses_) all.push_back(loss());
  });
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
void Layer::NameLayers(const std::vector<std::shared_ptr<Layer>>& layers) {
  size_t with_weights = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string plain = "layer-" + std::to_string(i);
    DropName(plain);
    if (!layers[i]->variables().empty()) {
      AddName("layer_with_weights-" + std::to_string(with_weights++),
              *layers[i]);
    }
    AddName(plain, *layers[i]);
  }
}

Tensor Sequential::Call(const Tensor& x, bool training) {
  if (layers_.empty()) {
    Throw(ErrorCode::kFailedPrecondition, "a Sequential without layers");
  }
  Tensor out = x;
  for (const auto& layer : layers_) out = (*layer)(out, training);
  if (!named_) NameLayers(layers_);
  named_ = true;
  return out;
}

}  // namespace headrace::tf::layers
