// Variables: tensors that change, and modules that own them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/tensor.h"

namespace headrace::tf {

// A handle to a tensor that can be assigned. Copies name the same variable.
// Safe to read and assign from several threads; a value once read stays as it
// was.
class HR_API Variable {
 public:
  Variable() = default;  // none; using it throws
  // Dtype and shape are those of `initial`, for good.
  explicit Variable(const Tensor& initial, std::string name = "Variable",
                    bool trainable = true);

  // The value now (or, in a traced function, when the call gets there).
  Tensor value() const;
  operator Tensor() const { return value(); }  // NOLINT
  void assign(const Tensor& value) const;
  void assign_add(const Tensor& delta) const;
  void assign_sub(const Tensor& delta) const;

  DType dtype() const;
  TensorShape shape() const;
  const std::string& name() const;
  bool trainable() const;
  // The resource handle that ops on variables take.
  const Tensor& handle() const;
  explicit operator bool() const { return state_ != nullptr; }
  bool operator==(const Variable& o) const { return state_ == o.state_; }

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// Owns named variables and modules, in order; the names are the keys of
// checkpoints, as Python attributes are ("layers/0/kernel" is module "layers",
// module "0", variable "kernel"). Derive from it or use it as it is. Not
// thread-safe to change.
class HR_API Module {
 public:
  virtual ~Module() = default;

  // Remembers and returns the variable.
  Variable Track(const std::string& name, Variable variable);
  // The child lives elsewhere (usually a member of this) and must outlive it.
  void Track(const std::string& name, Module* child);
  // Makes a child that this module owns.
  Module& Child(const std::string& name);

  // Of this module and its children, in order of tracking.
  std::vector<Variable> variables() const;
  std::vector<Variable> trainable_variables() const;

  struct Named {
    std::string name;
    Variable variable;  // or:
    Module* module = nullptr;
  };
  const std::vector<Named>& children() const { return children_; }

 private:
  std::vector<Named> children_;
  std::vector<std::unique_ptr<Module>> owned_;
};

}  // namespace headrace::tf
