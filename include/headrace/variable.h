// Variables: tensors that change, and modules that own them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/constraints.h"
#include "headrace/tensor.h"

namespace headrace {
class Trackable;  // the library's own
}

namespace headrace::tf {

// A handle to a tensor that can be assigned: tf.Variable. Copies name the same
// variable; the last copy (or checkpoint node, or graph that captured it) frees
// it. Safe to read and assign from several threads; each assignment is whole,
// and a value once read stays as it was.
class HR_API Variable {
 public:
  Variable() = default;  // none; using it throws
  // Dtype and shape are those of `initial`, for good. `name` is for messages
  // and summaries and need not be unique; checkpoints go by what the variable
  // is tracked as. Variables that are not trainable are not watched by tapes
  // and not among trainable_variables(). Optimizers apply the constraint to
  // what they made of it; assignments are not checked. Throws
  // kFailedPrecondition for an `initial` of a traced function, whose value does
  // not exist yet.
  explicit Variable(const Tensor& initial, std::string name = "Variable",
                    bool trainable = true, Constraint constraint = {});

  // The value now (or, in a traced function, when the call gets there). Shares
  // the variable's memory: the next assignment writes elsewhere while somebody
  // holds it, so reading costs nothing, and a kept value the size of the
  // variable.
  Tensor value() const;
  operator Tensor() const { return value(); }  // NOLINT
  // Of the variable's dtype and shape, else kInvalidArgument; nothing is
  // broadcast and no constraint applied. In a traced function they happen in
  // the order in which they stand there, when the call runs.
  void assign(const Tensor& value) const;
  void assign_add(const Tensor& delta) const;
  void assign_sub(const Tensor& delta) const;

  DType dtype() const;
  TensorShape shape() const;
  const std::string& name() const;
  bool trainable() const;
  const Constraint& constraint() const;
  // The resource handle that ops on variables take (ops.h).
  const Tensor& handle() const;
  explicit operator bool() const { return state_ != nullptr; }
  // Whether both name the same variable, not whether values are equal.
  bool operator==(const Variable& o) const { return state_ == o.state_; }

 private:
  friend struct internal::Access;
  struct State;
  std::shared_ptr<const State> state_;
};

// Owns named variables and modules, in order; the names are the keys of
// checkpoints, as Python attributes are ("layers/0/kernel" is module "layers",
// module "0", variable "kernel"). Derive from it or use it as it is. What is
// tracked after a checkpoint was restored takes its values from it then. To be
// changed by one thread at a time, and while nobody else reads it; variables
// found in it are as safe as all are.
class HR_API Module {
 public:
  Module();
  virtual ~Module();
  // Throws kFailedPrecondition when `o` tracks modules that live elsewhere:
  // its members would move. Who tracks `o` must not be left behind.
  Module(Module&& o);
  Module& operator=(Module&&) = delete;

  // Remembers and returns the variable. A name that was given before stays the
  // child's in variables(), while checkpoints know the newer one by it.
  Variable Track(const std::string& name, Variable variable);
  // The child lives elsewhere (usually a member of this) and must outlive it.
  void Track(const std::string& name, Module* child);
  // Makes a child that this module owns.
  Module& Child(const std::string& name);
  // Takes a child over; null throws.
  Module& Own(const std::string& name, std::shared_ptr<Module> child);

  // Of this module and its children, in order of tracking, each once.
  std::vector<Variable> variables() const;
  // Those that are trainable, as are the modules that they belong to.
  std::vector<Variable> trainable_variables() const;

  // Whether training changes it; setting tells its children too.
  bool trainable() const { return trainable_; }
  // Functions that were traced before keep what they were traced with.
  void set_trainable(bool trainable);

  struct Named {
    std::string name;
    Variable variable;  // or:
    Module* module = nullptr;
  };
  const std::vector<Named>& children() const { return children_; }

 protected:
  // What checkpoints know it as; made by the library for values of other kinds.
  explicit Module(std::shared_ptr<headrace::Trackable> node);
  // Names for checkpoints alone, beside those of Track.
  void AddName(const std::string& name, const Module& to);
  void AddName(const std::string& name, const Variable& to);
  void DropName(const std::string& name);

 private:
  friend struct internal::Access;
  void Gather(bool trainable_only, std::vector<Variable>* all) const;

  std::shared_ptr<headrace::Trackable> node_;
  std::vector<Named> children_;
  std::vector<std::shared_ptr<Module>> owned_;
  bool trainable_ = true;
};

}  // namespace headrace::tf
