// Symbolic tensors, and calls of layers with them.
#include "cc/layer/symbolic.h"

#include <atomic>

#include "cc/compose.h"
#include "graph/builder.h"
#include "headrace/layer/functional.h"

namespace headrace::tf {

using internal::Access;
using internal::Throw;

layers::Symbolic internal::NewPlace(const TensorShape& shape, DType dtype) {
  auto rep = std::make_shared<layers::Symbolic::Rep>();
  rep->shape = shape;
  rep->dtype = dtype;
  return layers::Symbolic(std::move(rep));
}

namespace layers {
namespace {

Tensor PlaceIn(GraphBuilder& graph, DType dtype, const TensorShape& shape) {
  return Access::Wrap(internal::Check(graph.AddPlaceholder(
      "input", internal::Core(dtype), internal::Core(shape), nullptr)));
}

}  // namespace

const Symbolic::Rep& Symbolic::rep() const {
  if (!rep_) Throw(ErrorCode::kInvalidArgument, "a null Symbolic was used");
  return *rep_;
}
const TensorShape& Symbolic::shape() const { return rep().shape; }
DType Symbolic::dtype() const { return rep().dtype; }
bool Symbolic::has_mask() const { return rep().has_mask; }

Symbolic Symbolic::ThenLayer(std::shared_ptr<Layer> layer) const {
  if (layer == nullptr) Throw(ErrorCode::kInvalidArgument, "a null layer");
  return (*layer)(*this);
}

std::vector<Symbolic> Layer::Described(const std::vector<Symbolic>& inputs,
                                       bool all) {
  std::vector<Tensor> found;
  std::vector<Symbolic> described;
  auto node = std::make_shared<Symbolic::Node>();
  {
    GraphBuilder scratch(std::make_shared<Graph>(),
                         GraphBuilder::Kind::kFunction);
    EmitterScope emit(&scratch);
    StopRecording quiet;
    std::vector<Tensor> places;
    for (const Symbolic& x : inputs) {
      const Symbolic::Rep& rep = x.rep();
      Tensor place = PlaceIn(scratch, rep.dtype, rep.shape);
      if (rep.has_mask) {
        place = place.with_mask(PlaceIn(scratch, DType::kBool, rep.mask_shape));
      }
      places.push_back(std::move(place));
    }
    if (all) {
      found = Outputs(places);
    } else {
      found.push_back((*this)(places));
    }
    // Losses of the scratch graph's tensors mean nothing outside.
    ClearCallLosses();
  }
  node->layer = weak_from_this().lock();
  if (node->layer == nullptr) {  // it lives elsewhere
    node->layer = std::shared_ptr<Layer>(std::shared_ptr<void>(), this);
  }
  node->inputs = inputs;
  node->all = all;
  node->count = found.size();
  static std::atomic<int64_t> serial{0};
  node->serial = ++serial;
  for (const Tensor& t : found) {
    auto rep = std::make_shared<Symbolic::Rep>();
    rep->node = node;
    rep->index = described.size();
    rep->shape = t.shape();
    rep->dtype = t.dtype();
    if (const Tensor mask = t.mask()) {
      rep->has_mask = true;
      rep->mask_shape = mask.shape();
    }
    described.emplace_back(std::move(rep));
  }
  return described;
}

Symbolic Layer::operator()(const Symbolic& x) & {
  return Described({x}, false)[0];
}
Symbolic Layer::operator()(const std::vector<Symbolic>& inputs) & {
  return Described(inputs, false)[0];
}
std::vector<Symbolic> Layer::Outputs(const std::vector<Symbolic>& inputs) & {
  return Described(inputs, true);
}

InputLayer::InputLayer(std::string name, DType dtype)
    : Layer(std::move(name), dtype) {
  set_supports_masking();
}
Tensor InputLayer::Call(const Tensor& x, bool training) { return x; }

Symbolic Input(const TensorShape& shape, InputOptions options) {
  auto rep = std::make_shared<Symbolic::Rep>();
  rep->shape = shape;
  rep->dtype = options.dtype;
  if (shape.known_rank) {
    rep->shape.dims.insert(rep->shape.dims.begin(), options.batch_size);
  }
  internal::Core(rep->shape);  // throws for what is no shape
  if (options.dtype == DType::kInvalid) {
    Throw(ErrorCode::kInvalidArgument, "an Input has a dtype");
  }
  auto node = std::make_shared<Symbolic::Node>();
  node->layer = std::make_shared<InputLayer>(options.name, options.dtype);
  rep->node = std::move(node);
  return Symbolic(std::move(rep));
}

Lambda::Lambda(std::function<Tensor(const Tensor&)> function)
    : Lambda([fn = std::move(function)](const std::vector<Tensor>& inputs,
                                        bool) { return fn(inputs.at(0)); }) {}
Lambda::Lambda(Function function, std::string name)
    : Layer(std::move(name)), function_(std::move(function)) {
  if (!function_) Throw(ErrorCode::kInvalidArgument, "a Lambda of no function");
}
Tensor Lambda::CallAll(const std::vector<Tensor>& inputs, bool training) {
  return function_(inputs, training);
}

namespace {

using Pair = Tensor (*)(const Operand& a, const Operand& b);

Symbolic OfBoth(const char* name, Pair fn, const Symbolic& a,
                const Symbolic& b) {
  return Join(Lambda([fn](const std::vector<Tensor>& in,
                          bool) { return fn(in.at(0), in.at(1)); },
                     name),
              {a, b});
}
Symbolic OfFirst(const char* name, Pair fn, const Symbolic& a, double b) {
  return Join(Lambda([fn, b](const std::vector<Tensor>& in,
                             bool) { return fn(in.at(0), b); },
                     name),
              {a});
}
Symbolic OfSecond(const char* name, Pair fn, double a, const Symbolic& b) {
  return Join(Lambda([fn, a](const std::vector<Tensor>& in,
                             bool) { return fn(a, in.at(0)); },
                     name),
              {b});
}

constexpr char kAdd[] = "tf.__operators__.add", kSub[] = "tf.math.subtract",
               kMul[] = "tf.math.multiply", kDiv[] = "tf.math.truediv";

}  // namespace

Symbolic operator+(const Symbolic& a, const Symbolic& b) {
  return OfBoth(kAdd, tf::operator+, a, b);
}
Symbolic operator-(const Symbolic& a, const Symbolic& b) {
  return OfBoth(kSub, tf::operator-, a, b);
}
Symbolic operator*(const Symbolic& a, const Symbolic& b) {
  return OfBoth(kMul, tf::operator*, a, b);
}
Symbolic operator/(const Symbolic& a, const Symbolic& b) {
  return OfBoth(kDiv, tf::operator/, a, b);
}
Symbolic operator+(const Symbolic& a, double b) {
  return OfFirst(kAdd, tf::operator+, a, b);
}
Symbolic operator-(const Symbolic& a, double b) {
  return OfFirst(kSub, tf::operator-, a, b);
}
Symbolic operator*(const Symbolic& a, double b) {
  return OfFirst(kMul, tf::operator*, a, b);
}
Symbolic operator/(const Symbolic& a, double b) {
  return OfFirst(kDiv, tf::operator/, a, b);
}
Symbolic operator+(double a, const Symbolic& b) {
  return OfSecond(kAdd, tf::operator+, a, b);
}
Symbolic operator-(double a, const Symbolic& b) {
  return OfSecond(kSub, tf::operator-, a, b);
}
Symbolic operator*(double a, const Symbolic& b) {
  return OfSecond(kMul, tf::operator*, a, b);
}
Symbolic operator/(double a, const Symbolic& b) {
  return OfSecond(kDiv, tf::operator/, a, b);
}
Symbolic operator-(const Symbolic& a) {
  return a.Then(Lambda([](const Tensor& x) { return -x; }));
}

}  // namespace layers
}  // namespace headrace::tf
