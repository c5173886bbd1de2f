#include "distributed/eager/spread_function.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autodiff/function_gradient.h"
#include "base/hash_map.h"
#include "distributed/eager/called_functions.h"
#include "distributed/eager/stepped_function.h"
#include "distributed/handshake.h"
#include "distributed/wire/methods.h"
#include "graph/export.h"
#include "op/registry.h"
#include "tensor/dtype_proto.h"

namespace headrace::distributed {
namespace {

// Functions that stay calls run where their call does: where its resources are,
// else where it says, else on `standard`.
Status CheckCallsOf(const Function& function, const FunctionLibrary* library,
                    const std::vector<KeptArgument>& arguments,
                    const DeviceName& own, const DeviceName& standard) {
  for (int i = 0; i < function.body->num_nodes(); ++i) {
    const Node& node = *function.body->node(i);
    if (!CallsFunctions(node.def())) continue;
    DeviceName at;
    if (!DeviceName::Parse(node.device(), &at)) continue;
    at = at.OrElse(standard).Task();
    const bool is_driven =
        node.def().Is(OpRole::kLoop) || node.def().Is(OpRole::kBranch);
    std::optional<DeviceName> first;  // where the first resource is
    for (const Edge& e : node.inputs()) {
      if (e.node->output_type(e.index) != DType::kResource) continue;
      const auto arg =
          std::find(function.args.begin(), function.args.end(), e.node);
      if (arg == function.args.end()) continue;
      const KeptArgument& kept = arguments[arg - function.args.begin()];
      at = kept.here() ? own : kept.task.Task();
      if (is_driven && first && !first->SameTask(at)) {
        return Unimplemented(node.def().name, " takes resources of ",
                             first->ToString(), " and ", at.ToString());
      }
      first = at;
    }
    FunctionsByName called;
    HR_RETURN_IF_ERROR(AddNamed(node.op().attrs(), library, &called));
    for (const auto& [name, f] : called) {
      for (int k = 0; k < f->body->num_nodes(); ++k) {
        const Node& inner = *f->body->node(k);
        if (!NamesOther(inner.device(), at)) continue;
        return CallLiesElsewhere(
            node.def().name, at,
            absl::StrCat("node '", inner.name(), "' (", inner.def().name,
                         ") of ", name, ", which is to run on ",
                         inner.device()));
      }
    }
  }
  return OkStatus();
}

// Whether it is to run in steps, as its calls cannot lie on one task each.
StatusOr<bool> NeedsSteps(const Function& function,
                          const FunctionLibrary* library,
                          const std::vector<KeptArgument>& arguments,
                          const DeviceName& own, const DeviceName& standard) {
  const Status whole =
      CheckCallsOf(function, library, arguments, own, standard);
  if (whole.ok()) return false;
  if (!absl::IsUnimplemented(whole)) return whole;
  HR_RETURN_IF_ERROR(CheckSteps(function, library, standard));
  return true;
}

// What uses a resource or variant that is given here runs here, whatever it
// names.
void KeepUsersHere(const Function& f,
                   const std::vector<KeptArgument>& arguments,
                   const std::map<StringView, tensorflow::NodeDef*>& nodes,
                   const std::string& here) {
  HashSet<const Node*> local;
  const auto stays = [](DType t) {
    return t == DType::kResource || t == DType::kVariant;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].here() && stays(f.args[i]->output_type(0))) {
      local.insert(f.args[i]);
    }
  }
  // Nodes mostly come behind their inputs; until none is added.
  for (bool added = !local.empty(); added;) {
    added = false;
    for (int i = 0; i < f.body->num_nodes(); ++i) {
      const Node* n = f.body->node(i);
      if (local.contains(n)) continue;
      for (const Edge& e : n->inputs()) {
        if (!local.contains(e.node) || !stays(e.node->output_type(e.index))) {
          continue;
        }
        added = local.insert(n).second;
        nodes.at(n->name())->set_device(here);
        break;
      }
    }
  }
}

std::string NameOf(const Edge& e) {
  return absl::StrCat(e.node->name(), ":", e.index);
}

// Sessions of that kind are ours alone.
Status CheckRunsHeadrace(Channel& channel, const DeviceName& task) {
  CallOptions options;
  options.deadline = Clock::now() + worker::kGetStatus.deadline;
  Calls calls;
  calls.Start(
      channel, worker::kGetStatus.path,
      WriteMessage(tensorflow::GetStatusRequest()), options,
      [&task](const Answer& answer) -> Status {
        HR_RETURN_IF_ERROR(StatusOf(answer));
        HR_ASSIGN_OR_RETURN(const PeerVersion peer,
                            IntroducedIn(answer.metadata));
        if (!peer.version.empty()) return OkStatus();
        return Unimplemented(
            "a function uses what lies on ", task.ToString(),
            ", which runs TensorFlow: functions that are spread over tasks of "
            "both kinds are not supported");
      });
  return calls.Wait();
}

// The same of tasks by their names, parts of which may be open.
Status CheckTasks(Cluster& cluster, const DeviceName& own,
                  const std::set<std::string>& names) {
  for (const std::string& name : names) {
    DeviceName task;
    if (!DeviceName::Parse(name, &task)) continue;
    task = task.OrElse({own.job, 0, 0, {}, {}});
    // (The placer tells of those that are not there.)
    const auto channel = cluster.ChannelOf(task);
    if (channel) HR_RETURN_IF_ERROR(CheckRunsHeadrace(*channel, task));
  }
  return OkStatus();
}

// The body, with the functions that it calls.
StatusOr<tensorflow::GraphDef> ExportWith(const Function& f,
                                          const FunctionLibrary* library) {
  FunctionsByName called;
  HR_RETURN_IF_ERROR(AddCalled(*f.body, library, &called));
  for (const auto& [name, other] : called) {
    if (f.body->library()->Find(name)) continue;
    HR_RETURN_IF_ERROR(f.body->library()->Add(other));
  }
  ExportOptions options;
  options.effects_of = &f;
  options.nothing = FindOp("NoOp");
  tensorflow::GraphDef def;
  HR_RETURN_IF_ERROR(ExportGraph(*f.body, options, &def));
  return def;
}

// Nodes that name no task go to `standard`, where there is one; the other tasks
// that nodes name are added to `tasks`.
void NameDevices(const DeviceName& own, const DeviceName* standard,
                 tensorflow::GraphDef* def, std::set<std::string>* tasks) {
  for (auto& node : *def->mutable_node()) {
    DeviceName name;
    if (!DeviceName::Parse(node.device(), &name)) continue;  // the placer's
    if (standard && !name.job && !name.task) name = name.OrElse(*standard);
    node.set_device(name.ToString());
    if (NamesOther(node.device(), own)) tasks->insert(name.Task().ToString());
  }
}

// The argument's node, as what gives the tensor that its task keeps.
void PutKept(const KeptArgument& argument, DType dtype,
             tensorflow::NodeDef* node) {
  node->set_op("_KeptTensor");
  node->clear_attr();
  auto& attrs = *node->mutable_attr();
  attrs["dtype"].set_type(TypeToProto(dtype));
  attrs["op_id"].set_i(argument.op);
  attrs["output_num"].set_i(argument.output);
  node->set_device(argument.task.ToString());
}

}  // namespace

std::string SessionOfEager(uint64_t context) {
  return absl::StrFormat("eager_%016x", context);
}

bool NamesOther(const std::string& device, const DeviceName& task) {
  DeviceName name;
  if (device.empty() || !DeviceName::Parse(device, &name)) return false;
  if (!name.job && !name.task) return false;
  // A job that is named without a task is its first one.
  return !name.OrElse({task.job, 0, name.job ? 0 : *task.task, {}, {}})
              .SameTask(task);
}

Status CallLiesElsewhere(StringView call, const DeviceName& task,
                         StringView node) {
  return Unimplemented(
      call, " lies on ", task.ToString(), " as a whole, and not ", node,
      ": functions of datasets cannot be divided among tasks, nor loops and "
      "branches that another task runs. Put the whole of it, or a function for "
      "that part outside of it, under the tf.device");
}

StatusOr<std::shared_ptr<const Function>> SpreadFunction::InSteps(
    const Function& function, const FunctionLibrary* library,
    const std::vector<KeptArgument>& arguments, const DeviceName& own,
    const DeviceName& standard) {
  HR_ASSIGN_OR_RETURN(std::shared_ptr<const Function> f,
                      CloneInlined(function, library));
  HR_ASSIGN_OR_RETURN(const bool steps,
                      NeedsSteps(*f, library, arguments, own, standard));
  return steps ? f : nullptr;
}

StatusOr<std::shared_ptr<SpreadFunction>> SpreadFunction::Make(
    const std::shared_ptr<Worker>& worker, const std::string& session,
    const Function& function, const FunctionLibrary* library,
    const std::vector<KeptArgument>& arguments, const std::string& standard,
    bool may_step) {
  if (arguments.size() != function.args.size()) {
    return InvalidArgument("Function ", function.name, " takes ",
                           function.args.size(), " inputs, and is given ",
                           arguments.size());
  }
  auto made = std::make_shared<SpreadFunction>();
  // Calls lie on one task as a whole.
  HR_ASSIGN_OR_RETURN(const std::shared_ptr<Function> f,
                      CloneInlined(function, library));
  HR_ASSIGN_OR_RETURN(const Worker::SessionState state,
                      worker->StateOf(session));
  const DeviceName own = DeviceName::OfTask(state.cluster->def().job_name(),
                                            state.cluster->def().task_index());
  DeviceName otherwise = own;
  if (!standard.empty() && !DeviceName::Parse(standard, &otherwise)) {
    return InvalidArgument("Malformed device specification '", standard, "'");
  }
  if (may_step) {
    HR_ASSIGN_OR_RETURN(const bool steps,
                        NeedsSteps(*f, library, arguments, own, otherwise));
    if (steps) {
      made->stepped_ = f;
      return made;
    }
  } else {
    HR_RETURN_IF_ERROR(CheckCallsOf(*f, library, arguments, own, otherwise));
  }
  HR_ASSIGN_OR_RETURN(tensorflow::GraphDef def, ExportWith(*f, library));
  std::set<std::string> filters;
  NameDevices(own, standard.empty() ? nullptr : &otherwise, &def, &filters);
  std::map<StringView, tensorflow::NodeDef*> nodes;
  for (auto& node : *def.mutable_node()) nodes[node.name()] = &node;
  DeviceName here = own;
  here.type = "CPU";
  here.id = 0;
  KeepUsersHere(*f, arguments, nodes, here.ToString());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Node& node = *f->args[i];
    if (arguments[i].here()) {
      made->feeds_.push_back(NameOf({f->args[i], 0}));
      continue;
    }
    PutKept(arguments[i], node.output_type(0), nodes.at(node.name()));
    filters.insert(arguments[i].task.Task().ToString());
  }
  for (const Edge& e : f->results) {
    const auto arg = std::find(f->args.begin(), f->args.end(), e.node);
    if (may_step && arg != f->args.end()) {
      made->passed_.push_back(static_cast<int>(arg - f->args.begin()));
      continue;
    }
    if (may_step) made->passed_.push_back(-1);
    made->fetches_.push_back(NameOf(e));
  }
  for (const Node* n : f->control_outputs) made->targets_.push_back(n->name());
  HR_RETURN_IF_ERROR(CheckTasks(*state.cluster, own, filters));
  HR_ASSIGN_OR_RETURN(
      made->session_,
      MasterSession::Join(
          worker, session, std::move(def), {filters.begin(), filters.end()},
          Clock::now() + worker::kCreateWorkerSession.deadline));
  return made;
}

Status SpreadFunction::Run(std::vector<Tensor> inputs,
                           std::vector<Tensor>* outputs) {
  if (inputs.size() != feeds_.size()) return Internal("inputs do not fit");
  StepRequest request;
  for (size_t i = 0; i < inputs.size(); ++i) {
    request.feeds.emplace_back(feeds_[i], std::move(inputs[i]));
  }
  request.fetches = fetches_;
  request.targets = targets_;
  // (There is nothing to do.)
  if (fetches_.empty() && targets_.empty()) return OkStatus();
  tensorflow::RunMetadata metadata;
  return session_->Run(std::move(request), outputs, &metadata);
}

}  // namespace headrace::distributed
