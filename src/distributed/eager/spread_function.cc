#include "distributed/eager/spread_function.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autodiff/function_gradient.h"
#include "distributed/eager/called_functions.h"
#include "distributed/handshake.h"
#include "distributed/wire/methods.h"
#include "graph/export.h"
#include "op/registry.h"
#include "tensor/dtype_proto.h"

namespace headrace::distributed {
namespace {

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

StatusOr<std::shared_ptr<SpreadFunction>> SpreadFunction::Make(
    const std::shared_ptr<Worker>& worker, const std::string& session,
    const Function& function, const FunctionLibrary* library,
    const std::vector<KeptArgument>& arguments) {
  if (arguments.size() != function.args.size()) {
    return InvalidArgument("Function ", function.name, " takes ",
                           function.args.size(), " inputs, and is given ",
                           arguments.size());
  }
  auto made = std::make_shared<SpreadFunction>();
  // Calls lie on one task as a whole.
  HR_ASSIGN_OR_RETURN(const std::shared_ptr<Function> f,
                      CloneInlined(function, library));
  FunctionsByName called;
  HR_RETURN_IF_ERROR(AddCalled(*f->body, library, &called));
  for (const auto& [name, other] : called) {
    if (f->body->library()->Find(name)) continue;
    HR_RETURN_IF_ERROR(f->body->library()->Add(other));
  }
  ExportOptions options;
  options.effects_of = f.get();
  options.nothing = FindOp("NoOp");
  tensorflow::GraphDef def;
  HR_RETURN_IF_ERROR(ExportGraph(*f->body, options, &def));
  std::map<StringView, tensorflow::NodeDef*> nodes;
  for (auto& node : *def.mutable_node()) nodes[node.name()] = &node;
  std::set<std::string> filters;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Node& node = *f->args[i];
    if (arguments[i].here()) {
      made->feeds_.push_back(NameOf({f->args[i], 0}));
      continue;
    }
    PutKept(arguments[i], node.output_type(0), nodes.at(node.name()));
    filters.insert(arguments[i].task.Task().ToString());
  }
  for (const Edge& e : f->results) made->fetches_.push_back(NameOf(e));
  for (const Node* n : f->control_outputs) made->targets_.push_back(n->name());
  HR_ASSIGN_OR_RETURN(const Worker::SessionState state,
                      worker->StateOf(session));
  for (const std::string& filter : filters) {
    DeviceName task;
    if (!DeviceName::Parse(filter, &task)) continue;
    const auto channel = state.cluster->ChannelOf(task);
    if (!channel) return InvalidArgument("No worker known as ", filter);
    HR_RETURN_IF_ERROR(CheckRunsHeadrace(*channel, task));
  }
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
