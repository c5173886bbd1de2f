#include "headrace/variable.h"

#include "base/hash_map.h"
#include "cc/access.h"
#include "cc/compose.h"
#include "cc/servers.h"
#include "cc/workers.h"
#include "op/anonymous.h"
#include "op/emitter.h"
#include "op/resource.h"
#include "train/remote_variable_node.h"
#include "train/variable_node.h"

namespace headrace::tf {

using internal::Access;
using internal::CallOp;
using internal::Check;
using internal::Core;

struct Variable::State {
  Tensor handle;
  DType dtype;
  TensorShape shape;
  std::string name;
  bool trainable;
  Constraint constraint;
  TrackablePtr node;  // what checkpoints see

  // The value lies on another task, and here a name of it alone, with whose
  // last copy it ends.
  static std::shared_ptr<const State> MakeThere(
      std::shared_ptr<State> state, const std::shared_ptr<RemotePlace>& place,
      const headrace::Tensor& initial) {
    const headrace::Shape shape = Core(state->shape);
    const headrace::Tensor handle =
        internal::RunThere(place, "VarHandleOp", {},
                           {{"dtype", Core(state->dtype)},
                            {"shape", shape},
                            {"shared_name", std::string(kAnonymousName)}})[0];
    internal::RunThere(place, "AssignVariableOp", {handle, initial},
                       {{"dtype", Core(state->dtype)}});
    state->node = std::make_shared<RemoteVariableNode>(
        handle, ValueSpec{.name = kVariableValue,
                          .full_name = state->name,
                          .dtype = Core(state->dtype),
                          .shape = shape});
    state->handle = Access::Wrap(Value(handle));
    return state;
  }
};

Variable::Variable(const Tensor& initial, std::string name, bool trainable,
                   Constraint constraint) {
  auto state = std::make_shared<State>();
  state->dtype = initial.dtype();
  state->shape = initial.shape();
  state->name = std::move(name);
  state->trainable = trainable;
  state->constraint = std::move(constraint);
  if (initial.is_symbolic()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "a variable cannot start from a tensor of a traced function; "
                "make it outside");
  }
  if (const auto place = internal::PlaceOfVariable()) {
    state_ = State::MakeThere(std::move(state), place,
                              Access::ValueOf(initial).tensor());
    return;
  }
  // The resource belongs to the handle alone: the last copy of the variable
  // frees it.
  ResourceHandle handle;
  headrace::Shape shape = Core(state->shape);
  auto resource =
      std::make_shared<headrace::Variable>(Core(state->dtype), shape);
  // The buffer is shared until either is changed.
  resource->Assign(Access::ValueOf(initial).tensor());
  state->node = std::make_shared<VariableNode>(resource, state->name);
  handle.resource = std::move(resource);
  handle.name = state->name;
  handle.data = std::make_shared<const HandleData>(
      HandleData{{Core(state->dtype), shape}});
  state->handle =
      Access::Wrap(Value(headrace::Tensor::Scalar(std::move(handle))));
  state_ = std::move(state);
  if (const auto workers = internal::CurrentWorkers()) workers->Tell(*this);
}

Variable internal::Access::ArgumentOf(Tensor handle, DType dtype,
                                      TensorShape shape, bool trainable) {
  auto state = std::make_shared<Variable::State>();
  state->handle = std::move(handle);
  state->dtype = dtype;
  state->shape = std::move(shape);
  state->name = "Variable";
  state->trainable = trainable;
  Variable v;
  v.state_ = std::move(state);
  return v;
}

const Tensor& Variable::handle() const {
  if (!state_) {
    throw Error(ErrorCode::kInvalidArgument, "a null Variable was used");
  }
  return state_->handle;
}

Tensor Variable::value() const {
  const Value& h = Access::ValueOf(handle());
  // Tapes watch the variable before they see the read that follows.
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

// handle() refuses a null variable before state_ is read.
DType Variable::dtype() const { return handle(), state_->dtype; }
TensorShape Variable::shape() const { return handle(), state_->shape; }
const std::string& Variable::name() const { return handle(), state_->name; }
bool Variable::trainable() const { return handle(), state_->trainable; }
const Constraint& Variable::constraint() const {
  return handle(), state_->constraint;
}

Variable internal::Access::VariableOf(const Value& handle, std::string name,
                                      bool trainable) {
  auto resource = Check(
      ResourceAs<headrace::Variable>(handle.tensor(), &DefaultResources()));
  auto state = std::make_shared<Variable::State>();
  state->handle = Wrap(handle);
  state->dtype = Public(resource->dtype());
  state->shape = Public(resource->shape());
  state->name = std::move(name);
  state->trainable = trainable;
  state->node = std::make_shared<VariableNode>(resource, state->name);
  Variable made;
  made.state_ = std::move(state);
  return made;
}

TrackablePtr internal::Access::NodeOf(const Variable& v) {
  return v.handle(), v.state_->node;
}
TrackablePtr internal::Access::NodeOf(const Module& m) { return m.node_; }

void internal::Access::Keep(Module& m, const std::string& name, Variable v) {
  m.children_.push_back({name, std::move(v), nullptr});
}

Module::Module() : Module(std::make_shared<Trackable>()) {}
Module::Module(TrackablePtr node) : node_(std::move(node)) {}
Module::~Module() = default;

Module::Module(Module&& o) : Module() {
  size_t below = 0;
  // A tracked member is a pointer to it: moving the module would leave the
  // pointer at the old place. Owned children lie on the heap and may go along.
  for (const Named& child : o.children_) below += child.module != nullptr;
  if (below != o.owned_.size()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "a module that tracks its members cannot be moved");
  }
  std::swap(node_, o.node_);
  std::swap(children_, o.children_);
  std::swap(owned_, o.owned_);
  trainable_ = o.trainable_;
}

void Module::AddName(const std::string& name, const Module& to) {
  Check(node_->Attach(name, to.node_));
}
void Module::AddName(const std::string& name, const Variable& to) {
  Check(node_->Attach(name, Access::NodeOf(to)));
}
void Module::DropName(const std::string& name) { node_->Detach(name); }

Variable Module::Track(const std::string& name, Variable variable) {
  AddName(name, variable);
  children_.push_back({name, variable, nullptr});
  return variable;
}

void Module::Track(const std::string& name, Module* child) {
  if (child == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, "no module to track as " + name);
  }
  AddName(name, *child);
  children_.push_back({name, Variable(), child});
}

Module& Module::Child(const std::string& name) {
  return Own(name, std::make_shared<Module>());
}

Module& Module::Own(const std::string& name, std::shared_ptr<Module> child) {
  Track(name, child.get());
  owned_.push_back(std::move(child));
  return *owned_.back();
}

void Module::set_trainable(bool trainable) {
  trainable_ = trainable;
  for (const Named& child : children_) {
    if (child.module != nullptr) child.module->set_trainable(trainable);
  }
}

void Module::Gather(bool trainable_only, std::vector<Variable>* all) const {
  // A frozen module hides all that is below it.
  if (trainable_only && !trainable_) return;
  for (const Named& child : children_) {
    if (child.module != nullptr) {
      child.module->Gather(trainable_only, all);
    } else if (!trainable_only || child.variable.trainable()) {
      all->push_back(child.variable);
    }
  }
}

namespace {

std::vector<Variable> EachOnce(std::vector<Variable> all) {
  HashSet<uint64_t> seen;
  // Modules may share a variable; optimizers must step it once.
  std::erase_if(all, [&](const Variable& v) {
    return !seen.insert(Access::ValueOf(v.handle()).id()).second;
  });
  return all;
}

}  // namespace

std::vector<Variable> Module::variables() const {
  std::vector<Variable> all;
  Gather(/*trainable_only=*/false, &all);
  return EachOnce(std::move(all));
}

std::vector<Variable> Module::trainable_variables() const {
  std::vector<Variable> all;
  Gather(/*trainable_only=*/true, &all);
  return EachOnce(std::move(all));
}

}  // namespace headrace::tf
