#include "distributed/eager/spread_calls.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/eager/called_functions.h"
#include "distributed/eager/remote_handle.h"
#include "function/by_calls.h"
#include "graph/graph.h"

namespace headrace::distributed {
namespace {

// Functions of which it is known, and plans that are kept.
constexpr size_t kMostFunctions = 4096;
constexpr size_t kMostPlans = 1024;

// Whether some resources or variants are of this process and some of tasks.
bool AreOfBoth(absl::Span<const Tensor* const> inputs) {
  bool here = false, there = false;
  for (const Tensor* t : inputs) {
    if (TravelsByValue(t->dtype())) continue;
    (RemoteNameOf(*t) != nullptr ? there : here) = true;
  }
  return here && there;
}

// Whether resources are of more than one task, this process among them.
bool AreOfSeveral(absl::Span<const Tensor* const> inputs) {
  std::set<std::string> tasks;
  for (const Tensor* t : inputs) {
    if (t->dtype() != DType::kResource) continue;
    const RemoteName* name = RemoteNameOf(*t);
    DeviceName at;
    if (name != nullptr) DeviceName::Parse(name->place()->device(), &at);
    tasks.insert(name == nullptr ? "" : at.Task().ToString());
  }
  return tasks.size() > 1;
}

std::vector<const Tensor*> PointersTo(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : tensors) pointers.push_back(&t);
  return pointers;
}

// What lies where.
std::vector<KeptArgument> ArgumentsOf(absl::Span<const Tensor* const> inputs) {
  std::vector<KeptArgument> arguments;
  for (const Tensor* t : inputs) {
    KeptArgument& argument = arguments.emplace_back();
    const auto* name = dynamic_cast<const NameHere*>(RemoteNameOf(*t));
    if (name == nullptr) continue;
    argument = {name->handle().task(), name->handle().op(),
                name->handle().output()};
  }
  return arguments;
}

std::string KeyOf(const Function& function, const std::string& place,
                  const std::vector<KeptArgument>& arguments) {
  std::string key = absl::StrCat(function.name, ";", place);
  for (const KeptArgument& a : arguments) {
    absl::StrAppend(&key, ";", a.task.ToString(), ",", a.op, ",", a.output);
  }
  return key;
}

std::vector<Tensor> CopyOf(absl::Span<const Tensor* const> inputs) {
  std::vector<Tensor> all;
  for (const Tensor* t : inputs) all.push_back(*t);
  return all;
}

}  // namespace

SpreadCalls::SpreadCalls(DeviceName own, std::shared_ptr<Worker> worker,
                         Status no_worker, std::string session,
                         std::shared_ptr<const FunctionLibrary> library,
                         PlaceOf place_of)
    : own_(std::move(own)),
      worker_(std::move(worker)),
      no_worker_(std::move(no_worker)),
      session_(std::move(session)),
      library_(std::move(library)),
      place_of_(std::move(place_of)) {}

DeviceName SpreadCalls::TaskOf(
    const std::shared_ptr<RemotePlace>& place) const {
  DeviceName task;
  if (!place || !DeviceName::Parse(place->device(), &task)) return own_;
  return task.Task();
}

StatusOr<std::string> SpreadCalls::NodeElsewhere(const FunctionPtr& function,
                                                 const DeviceName& task) {
  const std::string key = absl::StrCat(function->name, ";", task.ToString());
  {
    MutexLock lock(mutex_);
    if (closed_) return std::string();
    const auto it = elsewhere_.find(key);
    if (it != elsewhere_.end()) return it->second;
  }
  FunctionsByName all = {{function->name, function}};
  HR_RETURN_IF_ERROR(AddCalled(*function->body, library_.get(), &all));
  std::string found;
  for (const auto& [name, f] : all) {
    for (int i = 0; i < f->body->num_nodes() && found.empty(); ++i) {
      const Node& node = *f->body->node(i);
      if (!NamesOther(node.device(), task)) continue;
      found =
          absl::StrCat("node '", node.name(), "' (", node.def().name, ") of ",
                       name, ", which is to run on ", node.device());
    }
  }
  MutexLock lock(mutex_);
  if (elsewhere_.size() >= kMostFunctions) elsewhere_.clear();
  return elsewhere_[key] = found;
}

StatusOr<bool> SpreadCalls::Call(const FunctionPtr& function,
                                 const std::shared_ptr<RemotePlace>& place,
                                 absl::Span<const Tensor* const> inputs,
                                 std::vector<Tensor>* outputs) {
  HR_ASSIGN_OR_RETURN(const std::string node,
                      NodeElsewhere(function, TaskOf(place)));
  if (node.empty() && (!worker_ || !AreOfBoth(inputs))) return false;
  if (!worker_) {
    return FailedPrecondition(
        "Function ", function->name, " has a part for another task: ", node,
        ". The other tasks would have to reach this process, which does not "
        "listen (",
        no_worker_.message(),
        "). Call a function for that part within its tf.device instead");
  }
  const std::vector<KeptArgument> arguments = ArgumentsOf(inputs);
  std::vector<Tensor> here;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (arguments[i].here()) here.push_back(*inputs[i]);
  }
  HR_ASSIGN_OR_RETURN(
      const auto plan,
      PlanOf(function, place ? place->device() : std::string(), arguments));
  if (plan->stepped()) {
    HR_RETURN_IF_ERROR(RunStepped(*plan->stepped(), place,
                                  Stepping(/*at_place=*/false), CopyOf(inputs),
                                  outputs));
    return true;
  }
  std::vector<Tensor> made;
  HR_RETURN_IF_ERROR(plan->Run(std::move(here), &made));
  auto next = made.begin();
  outputs->clear();
  for (const int from : plan->passed()) {
    outputs->push_back(from < 0 ? std::move(*next++) : *inputs[from]);
  }
  return true;
}

StatusOr<bool> SpreadCalls::CallInSteps(
    const FunctionPtr& function, const std::shared_ptr<RemotePlace>& place,
    absl::Span<const Tensor* const> inputs, std::vector<Tensor>* outputs) {
  const std::vector<KeptArgument> arguments = ArgumentsOf(inputs);
  const std::string key = KeyOf(*function, place->device(), arguments);
  std::shared_ptr<const Function> body;
  bool known = false;
  {
    MutexLock lock(mutex_);
    const auto it = in_steps_.find(key);
    known = it != in_steps_.end();
    if (known) body = it->second;
  }
  if (!known) {
    HR_ASSIGN_OR_RETURN(
        body, SpreadFunction::InSteps(*function, library_.get(), arguments,
                                      TaskOf(place), TaskOf(place)));
    MutexLock lock(mutex_);
    if (in_steps_.size() >= kMostPlans) in_steps_.clear();
    in_steps_[key] = body;
  }
  if (!body) return false;
  HR_RETURN_IF_ERROR(RunStepped(*body, place, Stepping(/*at_place=*/true),
                                CopyOf(inputs), outputs));
  return true;
}

SteppedCalls SpreadCalls::Stepping(bool at_place) {
  SteppedCalls calls;
  calls.at_place = at_place;
  calls.place_of = [this](const std::string& device,
                          const std::shared_ptr<RemotePlace>& otherwise)
      -> StatusOr<std::shared_ptr<RemotePlace>> {
    DeviceName name;
    if (!DeviceName::Parse(device, &name) || (!name.job && !name.task)) {
      return otherwise;
    }
    if (!NamesOther(device, own_)) return std::shared_ptr<RemotePlace>();
    return place_of_(device);
  };
  calls.run = [this, at_place](const ResolvedOp& op,
                               const std::shared_ptr<RemotePlace>& place,
                               absl::Span<const Tensor* const> inputs,
                               absl::Span<Tensor> outputs) {
    return RunAt(op, place, at_place, inputs, outputs);
  };
  return calls;
}

Status SpreadCalls::CallPart(const FuncRef& called,
                             const std::shared_ptr<RemotePlace>& place,
                             bool at_place, std::vector<Tensor> inputs,
                             std::vector<Tensor>* outputs) {
  HR_ASSIGN_OR_RETURN(const FunctionPtr f,
                      FindFunction(library_.get(), called.name));
  const std::vector<const Tensor*> in = PointersTo(inputs);
  outputs->clear();
  if (at_place && place) {
    HR_ASSIGN_OR_RETURN(const bool stepped, CallInSteps(f, place, in, outputs));
    if (stepped) return OkStatus();
    HR_RETURN_IF_ERROR(place->Call(f, in, outputs));
    // What it gives back of resources of other tasks would not be the place's.
    for (size_t i = 0; i < f->results.size(); ++i) {
      const auto arg =
          std::find(f->args.begin(), f->args.end(), f->results[i].node);
      if (arg != f->args.end()) (*outputs)[i] = *in[arg - f->args.begin()];
    }
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(const bool ran, Call(f, place, in, outputs));
  if (ran) return OkStatus();
  if (const auto there = PlaceFor(in, place)) {
    return there->Call(f, in, outputs);
  }
  return RunStepped(*f, nullptr, Stepping(/*at_place=*/false),
                    std::move(inputs), outputs);
}

Status SpreadCalls::Drive(const ResolvedOp& op,
                          const std::shared_ptr<RemotePlace>& place,
                          bool at_place, absl::Span<const Tensor* const> inputs,
                          absl::Span<Tensor> outputs) {
  const auto call = [&](const FuncRef& function, std::vector<Tensor> in,
                        std::vector<Tensor>* out) {
    return CallPart(function, place, at_place, std::move(in), out);
  };
  std::vector<Tensor> results;
  HR_RETURN_IF_ERROR(op.def().Is(OpRole::kLoop)
                         ? RunLoopByCalls(op, inputs, call, &results)
                         : RunBranchByCalls(op, inputs, call, &results));
  if (results.size() != outputs.size()) {
    return InvalidArgument(op.name(), " has ", outputs.size(),
                           " results, and its function ", results.size());
  }
  std::move(results.begin(), results.end(), outputs.begin());
  return OkStatus();
}

StatusOr<std::shared_ptr<SpreadFunction>> SpreadCalls::PlanOf(
    const FunctionPtr& function, const std::string& standard,
    const std::vector<KeptArgument>& arguments) {
  const std::string key = KeyOf(*function, standard, arguments);
  {
    MutexLock lock(mutex_);
    const auto it = plans_.find(key);
    if (it != plans_.end()) return it->second;
  }
  HR_ASSIGN_OR_RETURN(auto plan,
                      SpreadFunction::Make(worker_, session_, *function,
                                           library_.get(), arguments, standard,
                                           /*may_step=*/true));
  MutexLock lock(mutex_);
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_[key] = plan;
  return plan;
}

StatusOr<bool> SpreadCalls::RunAt(const ResolvedOp& op,
                                  const std::shared_ptr<RemotePlace>& place,
                                  bool at_place,
                                  absl::Span<const Tensor* const> inputs,
                                  absl::Span<Tensor> outputs) {
  const FuncRef* called =
      IsFunctionCall(op.def()) ? op.attrs().Get<FuncRef>("f") : nullptr;
  if (called != nullptr) {
    HR_ASSIGN_OR_RETURN(const FunctionPtr f,
                        FindFunction(library_.get(), called->name));
    std::vector<Tensor> results;
    HR_ASSIGN_OR_RETURN(const bool ran, Call(f, place, inputs, &results));
    if (ran) std::move(results.begin(), results.end(), outputs.begin());
    return ran;
  }
  const DeviceName task = TaskOf(place);
  const bool may_drive =
      op.def().Is(OpRole::kLoop) || op.def().Is(OpRole::kBranch);
  bool drives = may_drive && AreOfSeveral(inputs);
  FunctionsByName named;
  HR_RETURN_IF_ERROR(AddNamed(op.attrs(), library_.get(), &named));
  for (const auto& [name, f] : named) {
    HR_ASSIGN_OR_RETURN(const std::string node, NodeElsewhere(f, task));
    if (node.empty()) continue;
    if (!may_drive) return CallLiesElsewhere(op.name(), task, node);
    HR_RETURN_IF_ERROR(CheckSteps(*f, library_.get(), task));
    drives = true;
  }
  if (!drives) return false;
  HR_RETURN_IF_ERROR(Drive(op, place, at_place, inputs, outputs));
  return true;
}

void SpreadCalls::Clear() {
  std::map<std::string, std::shared_ptr<SpreadFunction>> last;
  MutexLock lock(mutex_);
  elsewhere_.clear();
  in_steps_.clear();
  last.swap(plans_);
}

void SpreadCalls::Close() {
  Clear();
  MutexLock lock(mutex_);
  closed_ = true;
}

}  // namespace headrace::distributed
