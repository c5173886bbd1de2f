// Optimizers. Each owns its slots as tracked variables, so that a checkpoint
// of it goes on where it stopped.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headrace/variable.h"

namespace headrace::tf {

// Base: applies one gradient a variable, in order. Null gradients are skipped.
class HR_API Optimizer : public Module {
 public:
  virtual void Apply(const std::vector<Tensor>& gradients,
                     const std::vector<Variable>& variables) = 0;

 protected:
  // Zero variables like `variables`, made at the first call and tracked under
  // "name/0", "name/1", ...
  // The reference stays good while the optimizer lives.
  const std::vector<Variable>& Slots(const std::string& name,
                                     const std::vector<Variable>& variables);

 private:
  std::map<std::string, std::vector<Variable>> slots_;
};

// v -= rate * g; with momentum: a = momentum * a + g, v -= rate * a (or, with
// nesterov, v -= rate * (g + momentum * a)).
class HR_API SGD : public Optimizer {
 public:
  explicit SGD(float learning_rate, float momentum = 0, bool nesterov = false);
  void Apply(const std::vector<Tensor>& gradients,
             const std::vector<Variable>& variables) override;

 private:
  float learning_rate_, momentum_;
  bool nesterov_;
};

// Adam (Kingma and Ba, 2015), in the form with epsilon outside the bias
// correction, as TensorFlow's. Tracks "step", "m/i" and "v/i".
class HR_API Adam : public Optimizer {
 public:
  explicit Adam(float learning_rate = 0.001f, float beta_1 = 0.9f,
                float beta_2 = 0.999f, float epsilon = 1e-7f);
  void Apply(const std::vector<Tensor>& gradients,
             const std::vector<Variable>& variables) override;
  // Makes the slots now instead of at the first Apply, so that a checkpoint
  // restored before it finds them.
  void MakeSlots(const std::vector<Variable>& variables);
  // Steps taken, int64.
  const Variable& step() const { return step_; }

 private:
  float learning_rate_, beta_1_, beta_2_, epsilon_;
  Variable step_;
};

}  // namespace headrace::tf
