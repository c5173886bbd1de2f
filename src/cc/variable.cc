#include "headrace/variable.h"

#include "cc/access.h"
#include "op/emitter.h"
#include "op/resource.h"

namespace headrace::tf {

using internal::Access;
using internal::CallOp;
using internal::Core;

struct Variable::State {
  Tensor handle;
  DType dtype;
  TensorShape shape;
  std::string name;
  bool trainable;
};

Variable::Variable(const Tensor& initial, std::string name, bool trainable) {
  auto state = std::make_shared<State>();
  state->dtype = initial.dtype();
  state->shape = initial.shape();
  state->name = std::move(name);
  state->trainable = trainable;
  if (initial.is_symbolic()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "a variable cannot start from a tensor of a traced function; "
                "make it outside");
  }
  // The resource belongs to the handle alone: the last copy of the variable
  // frees it.
  ResourceHandle handle;
  headrace::Shape shape = Core(state->shape);
  auto resource =
      std::make_shared<headrace::Variable>(Core(state->dtype), shape);
  resource->Assign(Access::ValueOf(initial).tensor());
  handle.resource = std::move(resource);
  handle.name = state->name;
  handle.data = std::make_shared<const HandleData>(
      HandleData{{Core(state->dtype), shape}});
  state->handle =
      Access::Wrap(Value(headrace::Tensor::Scalar(std::move(handle))));
  state_ = std::move(state);
}

const Tensor& Variable::handle() const {
  if (!state_) {
    throw Error(ErrorCode::kInvalidArgument, "a null Variable was used");
  }
  return state_->handle;
}

Tensor Variable::value() const {
  const Value& h = Access::ValueOf(handle());
  if (state_->trainable && HasRecorders()) TellVariableAccessed(h);
  return internal::CallOp1("ReadVariableOp", {h},
                           {{"dtype", Core(state_->dtype)}});
}

void Variable::assign(const Tensor& value) const {
  CallOp("AssignVariableOp",
         {Access::ValueOf(handle()), Access::ValueOf(value)},
         {{"validate_shape", true}});
}
void Variable::assign_add(const Tensor& delta) const {
  CallOp("AssignAddVariableOp",
         {Access::ValueOf(handle()), Access::ValueOf(delta)});
}
void Variable::assign_sub(const Tensor& delta) const {
  CallOp("AssignSubVariableOp",
         {Access::ValueOf(handle()), Access::ValueOf(delta)});
}

DType Variable::dtype() const { return handle(), state_->dtype; }
TensorShape Variable::shape() const { return handle(), state_->shape; }
const std::string& Variable::name() const { return handle(), state_->name; }
bool Variable::trainable() const { return handle(), state_->trainable; }

Variable Module::Track(const std::string& name, Variable variable) {
  children_.push_back({name, variable, nullptr});
  return variable;
}

void Module::Track(const std::string& name, Module* child) {
  children_.push_back({name, Variable(), child});
}

Module& Module::Child(const std::string& name) {
  owned_.push_back(std::make_unique<Module>());
  Track(name, owned_.back().get());
  return *owned_.back();
}

std::vector<Variable> Module::variables() const {
  std::vector<Variable> all;
  for (const Named& child : children_) {
    if (child.module == nullptr) {
      all.push_back(child.variable);
      continue;
    }
    std::vector<Variable> inner = child.module->variables();
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

std::vector<Variable> Module::trainable_variables() const {
  std::vector<Variable> all = variables();
  std::erase_if(all, [](const Variable& v) { return !v.trainable(); });
  return all;
}

}  // namespace headrace::tf
