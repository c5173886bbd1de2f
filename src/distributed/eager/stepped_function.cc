#include "distributed/eager/stepped_function.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "distributed/eager/called_functions.h"
#include "distributed/eager/spread_function.h"
#include "eager/eager_emitter.h"
#include "op/registry.h"

namespace headrace::distributed {
namespace {

// This thread's ops go to a place while it lives.
class AtPlace {
 public:
  explicit AtPlace(std::shared_ptr<RemotePlace> place)
      : before_(PlaceFor(absl::Span<const Tensor* const>())) {
    SetThisPlace(std::move(place));
  }
  ~AtPlace() { SetThisPlace(std::move(before_)); }
  AtPlace(const AtPlace&) = delete;

 private:
  std::shared_ptr<RemotePlace> before_;
};

// By node: whether it is to run.
std::vector<bool> NeededOf(const Function& f) {
  std::vector<bool> needed(f.body->num_nodes());
  std::vector<const Node*> open;
  const auto need = [&](const Node* n) {
    if (needed[n->id()]) return;
    needed[n->id()] = true;
    open.push_back(n);
  };
  for (const Edge& e : f.results) need(e.node);
  for (const Node* n : f.control_outputs) need(n);
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    for (const Edge& e : n->inputs()) need(e.node);
    for (const Node* c : n->control_inputs()) need(c);
  }
  return needed;
}

class SteppedRun {
 public:
  SteppedRun(const Function& f, const std::shared_ptr<RemotePlace>& place,
             const SteppedCalls& calls)
      : f_(f), place_(place), calls_(calls), values_(f.body->num_nodes()) {}

  Status Run(std::vector<Tensor> inputs, std::vector<Tensor>* outputs) {
    if (inputs.size() != f_.args.size()) {
      return InvalidArgument("Function ", f_.name, " takes ", f_.args.size(),
                             " inputs, and is given ", inputs.size());
    }
    const std::vector<bool> needed = NeededOf(f_);
    std::vector<bool> given(values_.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      values_[f_.args[i]->id()] = {std::move(inputs[i])};
      given[f_.args[i]->id()] = true;
    }
    for (int i = 0; i < f_.body->num_nodes(); ++i) {
      if (needed[i] && !given[i])
        HR_RETURN_IF_ERROR(RunNode(*f_.body->node(i)));
    }
    outputs->clear();
    for (const Edge& e : f_.results) {
      outputs->push_back(values_[e.node->id()][e.index]);
    }
    return OkStatus();
  }

 private:
  Status RunNode(const Node& node) {
    HR_RETURN_IF_ERROR(CheckStop());
    std::vector<const Tensor*> in;
    for (const Edge& e : node.inputs()) {
      const auto& outputs = values_[e.node->id()];
      // A loop of nodes comes back to one before.
      if (outputs.empty()) {
        return Unimplemented("node '", node.name(), "' of ", f_.name,
                             " is in a loop of TensorFlow 1, parts of which "
                             "are for several tasks");
      }
      in.push_back(&outputs[e.index]);
    }
    std::vector<Tensor> out(node.num_outputs());
    HR_ASSIGN_OR_RETURN(auto place, calls_.place_of(node.device(), place_));
    if (CallsFunctions(node.def())) {
      HR_ASSIGN_OR_RETURN(
          const bool ran,
          calls_.run(node.op(), calls_.at_place ? place : PlaceFor(in, place),
                     in, absl::MakeSpan(out)));
      if (ran) return Keep(node, std::move(out));
    }
    const AtPlace at(std::move(place));
    HR_RETURN_IF_ERROR(RunEagerly(node.op(), in, absl::MakeSpan(out)));
    return Keep(node, std::move(out));
  }
  Status Keep(const Node& node, std::vector<Tensor> outputs) {
    values_[node.id()] = std::move(outputs);
    return OkStatus();
  }

  const Function& f_;
  const std::shared_ptr<RemotePlace>& place_;
  const SteppedCalls& calls_;
  std::vector<std::vector<Tensor>> values_;  // outputs, by node
};

bool IsDriven(const OpDef& def) {
  return def.Is(OpRole::kLoop) || def.Is(OpRole::kBranch) ||
         IsFunctionCall(def);
}

Status CheckNode(const Node& node, const FunctionLibrary* library,
                 const DeviceName& task) {
  if (!CallsFunctions(node.def()) || IsDriven(node.def())) return OkStatus();
  DeviceName at;
  if (!DeviceName::Parse(node.device(), &at)) return OkStatus();
  at = at.OrElse(task).Task();
  FunctionsByName named;
  HR_RETURN_IF_ERROR(AddNamed(node.op().attrs(), library, &named));
  for (const auto& [name, f] : named) {
    for (int i = 0; i < f->body->num_nodes(); ++i) {
      const Node& inner = *f->body->node(i);
      if (!NamesOther(inner.device(), at)) continue;
      return CallLiesElsewhere(
          node.def().name, at,
          absl::StrCat("node '", inner.name(), "' (", inner.def().name, ") of ",
                       name, ", which is to run on ", inner.device()));
    }
  }
  return OkStatus();
}

}  // namespace

Status RunStepped(const Function& function,
                  const std::shared_ptr<RemotePlace>& place,
                  const SteppedCalls& calls, std::vector<Tensor> inputs,
                  std::vector<Tensor>* outputs) {
  return SteppedRun(function, place, calls).Run(std::move(inputs), outputs);
}

Status CheckSteps(const Function& function, const FunctionLibrary* library,
                  const DeviceName& task) {
  FunctionsByName called;
  HR_RETURN_IF_ERROR(AddCalled(*function.body, library, &called));
  const auto check = [&](const Function& f) -> Status {
    for (int i = 0; i < f.body->num_nodes(); ++i) {
      HR_RETURN_IF_ERROR(CheckNode(*f.body->node(i), library, task));
    }
    return OkStatus();
  };
  HR_RETURN_IF_ERROR(check(function));
  for (const auto& [name, f] : called) HR_RETURN_IF_ERROR(check(*f));
  return OkStatus();
}

}  // namespace headrace::distributed
