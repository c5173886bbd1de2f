// Layers around layers: tf.keras.layers.Bidirectional and TimeDistributed.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "headrace/layer/recurrent.h"

namespace headrace::tf::layers {

// A recurrent layer forwards, and one of the same options backwards (Schuster
// and Paliwal, 1997); outputs are joined, along the features with "concat". Of
// [n, steps, features]; with return_sequences step by step, where masked steps
// give zeros. Checkpoints know the two as forward_layer and backward_layer. The
// states are not given.
class HR_API Bidirectional : public Layer {
 public:
  // `merge_mode` is "concat", "sum", "ave" or "mul"; others are
  // kInvalidArgument, as is a layer that has weights already.
  template <typename L,
            typename = std::enable_if_t<std::is_base_of_v<Recurrent, L>>>
  explicit Bidirectional(L layer, const std::string& merge_mode = "concat")
      : Bidirectional(std::make_shared<L>(std::move(layer)), merge_mode) {}
  Bidirectional(std::shared_ptr<Recurrent> layer,
                const std::string& merge_mode);

  Recurrent& forward_layer() const { return *forward_; }
  Recurrent& backward_layer() const { return *backward_; }

 protected:
  Tensor Call(const Tensor& x, bool training) override;
  Tensor MaskFor(const std::vector<Tensor>& inputs) const override;

 private:
  std::shared_ptr<Recurrent> forward_, backward_;
  std::string mode_;
};

// A layer applied to every step of [n, steps, ...] by itself: it sees one batch
// of n * steps samples, so that BatchNormalization takes its statistics over
// all steps. Checkpoints know it as layer. Throws kInvalidArgument for a null
// layer and for inputs or outputs of unknown rank.
class HR_API TimeDistributed : public Layer {
 public:
  template <typename L,
            typename = std::enable_if_t<std::is_base_of_v<Layer, L>>>
  explicit TimeDistributed(L layer)
      : TimeDistributed(
            std::shared_ptr<Layer>(std::make_shared<L>(std::move(layer)))) {}
  explicit TimeDistributed(std::shared_ptr<Layer> layer);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::shared_ptr<Layer> layer_;
};

}  // namespace headrace::tf::layers
