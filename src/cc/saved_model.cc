#include "headrace/saved_model.h"

#include "absl/strings/str_split.h"
#include "cc/access.h"
#include "cc/safe_mode.h"
#include "headrace/error.h"
#include "saved_model/signature.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

struct SavedModel::Signature::State {
  std::shared_ptr<headrace::ConcreteFunction> function;
  std::vector<Argument> inputs, outputs;
};

struct SavedModel::State {
  std::shared_ptr<LoadedModel> model;
  std::map<std::string, Signature> signatures;
  std::map<int, Variable> variables;  // by object
};

namespace {

using Argument = SavedModel::Signature::Argument;

Argument ArgumentOf(const std::string& name, const Node* node, int index) {
  return {name, internal::Public(node->output_type(index)),
          internal::Public(node->output_shape(index))};
}

}  // namespace

const std::vector<Argument>& SavedModel::Signature::inputs() const {
  return state_->inputs;
}
const std::vector<Argument>& SavedModel::Signature::outputs() const {
  return state_->outputs;
}

NamedTensors SavedModel::Signature::operator()(
    const NamedTensors& inputs) const {
  std::vector<Value> args;
  for (const Argument& a : state_->inputs) {
    auto it = inputs.find(a.name);
    if (it == inputs.end()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the signature's input " + a.name + " is missing");
    }
    args.push_back(Access::ValueOf(it->second));
  }
  if (inputs.size() > args.size()) {
    for (const auto& [name, tensor] : inputs) {
      bool known = false;
      for (const Argument& a : state_->inputs) known = known || a.name == name;
      if (!known) {
        throw Error(ErrorCode::kInvalidArgument,
                    "the signature has no input " + name);
      }
    }
  }
  ValueList outputs;
  Check(state_->function->Call(args, &outputs));
  NamedTensors named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    named[state_->outputs[i].name] = Access::Wrap(std::move(outputs[i]));
  }
  return named;
}

SavedModel SavedModel::Load(const std::string& folder,
                            const LoadOptions& options) {
  LoadedModel::Options core;
  if (!options.tags.empty()) core.tags = options.tags;
  core.allow_partial_checkpoint = options.allow_partial_checkpoint;
  if (options.safe_mode) {
    core.sandbox =
        internal::SandboxOf(*options.safe_mode, "the model in " + folder);
  }
  auto state = std::make_shared<State>();
  state->model = Check(LoadedModel::Load(folder, core));
  for (auto& [name, found] : Check(SignaturesOf(*state->model))) {
    auto own = std::make_shared<Signature::State>();
    const headrace::Function& f = *found.function->function();
    for (size_t i = 0; i < found.inputs.size(); ++i) {
      own->inputs.push_back(ArgumentOf(found.inputs[i], f.args[i], 0));
    }
    for (size_t i = 0; i < found.outputs.size(); ++i) {
      own->outputs.push_back(
          ArgumentOf(found.outputs[i], f.results[i].node, f.results[i].index));
    }
    own->function = std::move(found.function);
    state->signatures[name].state_ = std::move(own);
  }
  for (int id = 0; id < state->model->num_objects(); ++id) {
    if (!state->model->object(id).has_variable()) continue;
    const auto& saved = state->model->object(id).variable();
    state->variables.emplace(
        id, Access::VariableOf(state->model->value(id), saved.name(),
                               saved.trainable()));
  }
  SavedModel model;
  model.state_ = std::move(state);
  return model;
}

std::vector<std::string> SavedModel::signature_names() const {
  std::vector<std::string> names;
  for (const auto& [name, signature] : state_->signatures) {
    names.push_back(name);
  }
  return names;
}

const SavedModel::Signature& SavedModel::signature(
    const std::string& name) const {
  auto it = state_->signatures.find(name);
  if (it == state_->signatures.end()) {
    throw Error(ErrorCode::kNotFound, "the model has no signature " + name);
  }
  return it->second;
}

Variable SavedModel::variable(const std::string& path) const {
  int id = 0;
  for (const StringView name : absl::StrSplit(path, '/')) {
    id = state_->model->Child(id, name);
    if (id < 0) break;
  }
  if (id < 0 && state_->model->session().graph) {
    for (const auto& [number, variable] : state_->variables) {
      if (state_->model->object(number).variable().name() == path) id = number;
    }
  }
  auto it = state_->variables.find(id);
  if (it == state_->variables.end()) {
    throw Error(ErrorCode::kNotFound, "the model has no variable " + path);
  }
  return it->second;
}

}  // namespace headrace::tf
