// Gradients by recording: tf.GradientTape.
#pragma once

#include <memory>
#include <vector>

#include "headrace/gradient.h"
#include "headrace/tensor.h"
#include "headrace/variable.h"

namespace headrace::tf {

// What gradients are taken with respect to: a tensor that was watched, or a
// variable. Throws kInvalidArgument for a null one.
class HR_API Source {
 public:
  Source(const Tensor& t) : tensor_(t) {}             // NOLINT
  Source(const Variable& v) : tensor_(v.handle()) {}  // NOLINT
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// Records what is computed on this thread while it lives, and walks it back.
// What it recorded keeps the values alive that gradients read. Tapes nest, so
// gradients of gradients work; the same tape works inside traced functions. One
// thread at a time, the one that made it.
class HR_API GradientTape {
 public:
  // `persistent`: gradient() may be called more than once, and recording goes
  // on; it keeps all values until the tape goes. `watch_variables`: trainable
  // variables are watched when they are read. Without it only what watch()
  // names counts.
  explicit GradientTape(bool persistent = false, bool watch_variables = true);
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Gradients will be wanted for `t`: call it before `t` is used. Tensors of
  // integer, bool and string dtypes have no gradient; watching them does
  // nothing.
  void watch(const Tensor& t);
  // d(sum of target)/d(source), one a source: null where the target does not
  // depend on it, slices where only some rows of a variable were looked up. The
  // last form is always dense. Stops the recording unless persistent; what was
  // recorded is then gone, and a further call throws kFailedPrecondition.
  // Throws kNotFound where an op on the way has no gradient, and what the
  // gradients' own ops throw.
  Gradients gradient(const Tensor& target, const std::vector<Source>& sources);
  Gradients gradient(const Tensor& target,
                     const std::vector<Variable>& sources);
  Tensor gradient(const Tensor& target, const Source& source);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::tf
