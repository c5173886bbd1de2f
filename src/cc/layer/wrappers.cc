#include "headrace/layer/wrappers.h"

#include "cc/compose.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

Bidirectional::Bidirectional(std::shared_ptr<Recurrent> layer,
                             const std::string& merge_mode)
    : Layer("bidirectional"), forward_(std::move(layer)), mode_(merge_mode) {
  if (mode_ != "concat" && mode_ != "sum" && mode_ != "ave" && mode_ != "mul") {
    Throw(ErrorCode::kInvalidArgument,
          "Invalid merge mode. Received: " + mode_ +
              ". Merge mode should be one of {\"sum\", \"mul\", \"ave\", "
              "\"concat\"}");
  }
  if (forward_ == nullptr || forward_->built()) {
    Throw(ErrorCode::kInvalidArgument,
          "Bidirectional needs a recurrent layer without weights yet");
  }
  backward_ = forward_->Reversed();
  Own("forward_layer", forward_);
  Own("backward_layer", backward_);
  if (forward_->return_sequences()) {
    forward_->set_zero_output_for_mask();
    backward_->set_zero_output_for_mask();
  }
  set_input_rank(3, /*exact=*/true);
}

Tensor Bidirectional::Call(const Tensor& x, bool training) {
  const Tensor ahead = (*forward_)(x, training);
  Tensor back = (*backward_)(x, training);
  if (forward_->return_sequences()) {
    back = Op("ReverseV2", {back, internal::Ints({1})});
  }
  if (mode_ == "sum") return ahead + back;
  if (mode_ == "ave") return (ahead + back) / 2;
  if (mode_ == "mul") return ahead * back;
  return Op("ConcatV2", {ahead, back, internal::Int(-1)}, {{"N", 2}});
}

Tensor Bidirectional::MaskFor(const std::vector<Tensor>& inputs) const {
  return forward_->return_sequences() ? inputs[0].mask() : Tensor();
}

TimeDistributed::TimeDistributed(std::shared_ptr<Layer> layer)
    : Layer("time_distributed"), layer_(std::move(layer)) {
  if (layer_ == nullptr) {
    Throw(ErrorCode::kInvalidArgument, "TimeDistributed needs a layer");
  }
  Own("layer", layer_);
  set_input_rank(3, /*exact=*/false);
  set_supports_masking();
}

Tensor TimeDistributed::Call(const Tensor& x, bool training) {
  const TensorShape shape = x.shape();
  if (!shape.known_rank) {
    Throw(ErrorCode::kInvalidArgument,
          "the inputs of TimeDistributed must have a known rank");
  }
  const auto part = [](const Tensor& t, int64_t from, int64_t to) {
    return Op("StridedSlice", {internal::ShapeOf(t), internal::Ints({from}),
                               internal::Ints({to}), internal::Ints({1})});
  };
  const auto reshaped = [](const Tensor& t, const Tensor& outer,
                           const Tensor& inner) {
    return Op("Reshape", {t, Op("ConcatV2", {outer, inner, internal::Int(0)},
                                {{"N", 2}})});
  };
  // Sizes that are known stay so, as constants.
  std::vector<int64_t> inner(shape.dims.begin() + 2, shape.dims.end());
  bool known = true;
  for (const int64_t n : inner) known = known && n >= 0;
  const Tensor steps =
      reshaped(x, internal::Ints({-1}),
               known ? internal::Ints(inner) : part(x, 2, shape.rank()));
  const Tensor out = (*layer_)(steps, training);
  const TensorShape given = out.shape();
  if (!given.known_rank) {
    Throw(ErrorCode::kInvalidArgument,
          "the outputs under TimeDistributed must have a known rank");
  }
  std::vector<int64_t> tail(given.dims.begin() + 1, given.dims.end());
  known = true;
  for (const int64_t n : tail) known = known && n >= 0;
  const Tensor back = known ? internal::Ints(tail) : part(out, 1, given.rank());
  // One size at most is left open.
  if (known && (shape[0] >= 0 || shape[1] >= 0)) {
    return reshaped(out, internal::Ints({shape[0], shape[1]}), back);
  }
  return reshaped(out, part(x, 0, 2), back);
}

}  // namespace headrace::tf::layers
