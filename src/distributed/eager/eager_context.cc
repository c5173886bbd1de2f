#include "distributed/eager/eager_context.h"

#include <utility>

#include "base/host_name.h"
#include "graph/attr_proto.h"
#include "graph/builder.h"
#include "op/registry.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow::eager;  // NOLINT: the messages of the service

// Functions whose errors are remembered.
constexpr size_t kMostRefused = 4096;
// Functions over several tasks that are kept, as they are made for what they
// are given.
constexpr size_t kMostSpread = 1024;
// Items of one call.
constexpr int kMostItems = 1 << 20;

// Attributes that the op does not know are passed over, as they may be those
// of another version.
StatusOr<AttrMap> AttrsOf(const OpDef& op, const Operation& operation) {
  AttrMap attrs;
  for (const auto& [name, proto] : operation.attrs()) {
    const AttrDef* def = op.FindAttr(name);
    if (def == nullptr) continue;
    HR_ASSIGN_OR_RETURN(AttrValue value, AttrFromProto(proto, def->kind));
    attrs.Set(name, std::move(value));
  }
  return attrs;
}

// The key of an end of an edge between devices.
StatusOr<RendezvousKey> KeyOf(const Operation& operation) {
  const auto text = [&](const char* name) -> std::string {
    const auto it = operation.attrs().find(name);
    return it == operation.attrs().end() ? "" : it->second.s();
  };
  DeviceName from, to;
  if (!DeviceName::Parse(text("send_device"), &from) || !from.full() ||
      !DeviceName::Parse(text("recv_device"), &to) || !to.full()) {
    return InvalidArgument("Invalid  rendezvous key: ", text("send_device"),
                           ";;", text("recv_device"));
  }
  const auto it = operation.attrs().find("send_device_incarnation");
  const int64_t incarnation =
      it == operation.attrs().end() ? 0 : it->second.i();
  return RendezvousKey::Of(from, static_cast<uint64_t>(incarnation), to,
                           text("tensor_name"));
}

}  // namespace

StatusOr<std::shared_ptr<EagerContext>> EagerContext::Make(
    std::shared_ptr<Worker> worker, std::shared_ptr<KeptBytes> kept_bytes,
    const CreateContextRequest& request) {
  std::shared_ptr<EagerContext> made(new EagerContext);
  made->worker_ = std::move(worker);
  made->handles_ = std::make_shared<Handles>(std::move(kept_bytes));
  made->id_ = static_cast<int64_t>(request.context_id());
  made->view_ = request.context_view_id();
  made->session_ = SessionOfEager(request.context_id());
  // Longer ones than a year are for ever.
  constexpr int64_t kLongest = int64_t{366} * 24 * 3600;
  if (request.keep_alive_secs() > 0 && request.keep_alive_secs() < kLongest) {
    made->keep_alive_ = std::chrono::seconds(request.keep_alive_secs());
  }
  tensorflow::CreateWorkerSessionRequest session;
  session.set_session_handle(made->session_);
  *session.mutable_server_def() = request.server_def();
  session.set_isolate_session_state(true);
  HR_RETURN_IF_ERROR(made->worker_->CreateSession(session));
  HR_ASSIGN_OR_RETURN(made->state_, made->worker_->StateOf(made->session_));
  const tensorflow::ServerDef& def = made->state_.cluster->def();
  made->task_ = DeviceName::OfTask(def.job_name(), def.task_index());
  HR_ASSIGN_OR_RETURN(made->rendezvous_,
                      made->worker_->Meet(made->session_, made->id_));
  HR_RETURN_IF_ERROR(made->state_.resources->Create<TensorStore>(
      TensorStore::kContainer, TensorStore::kName, made->handles_));
  made->ops_ = std::make_unique<OpContext>(made->state_.resources);
  made->Touch();
  return made;
}

EagerContext::~EagerContext() { Close(); }

bool EagerContext::forgotten(Clock::time_point now) const {
  if (keep_alive_ == Clock::duration::zero()) return false;
  const Clock::time_point touched{Clock::duration(touched_.load())};
  return now - touched > keep_alive_;
}

void EagerContext::Close() {
  if (closing_.cancelled()) return;
  closing_.Cancel();
  worker_->CleanUp(id_);
  worker_->DeleteSession(session_).IgnoreError();
  handles_->Clear();
  MutexLock lock(mutex_);
  spread_.clear();
}

Status EagerContext::Update(const UpdateContextRequest& request) {
  if (request.context_view_id() != view() + 1) {
    return InvalidArgument(
        "EagerService:UpdateContext failed. Context id: <",
        request.context_id(), "> currently at view #", view(),
        " but received update request at view #", request.context_view_id(),
        ". View id should only be continuously incremented.");
  }
  HR_RETURN_IF_ERROR(worker_->UpdateSession(session_, request.server_def()));
  view_ = request.context_view_id();
  return OkStatus();
}

Status EagerContext::Enqueue(const EnqueueRequest& request,
                             const CancellationToken* token,
                             EnqueueResponse* response) {
  if (request.queue_size() > kMostItems) {
    return InvalidArgument(request.queue_size(), " items in one call; at most ",
                           kMostItems, " may be");
  }
  const StopScope closing(&closing_);
  const StopScope stop(token);
  const RendezvousScope meeting(rendezvous_.get());
  for (const QueueItem& item : request.queue()) {
    HR_RETURN_IF_ERROR(CheckStop());
    HR_RETURN_IF_ERROR(Do(item, response->add_queue_response()));
  }
  return OkStatus();
}

Status EagerContext::RunCalls(const RunCallsRequest& request,
                              ManySteps& calls) {
  const StopScope closing(&closing_);
  const RendezvousScope meeting(rendezvous_.get());
  for (const QueueItem& item : request.first()) {
    QueueResponse unused;
    HR_RETURN_IF_ERROR(CheckStop());
    HR_RETURN_IF_ERROR(Do(item, &unused));
  }
  for (const Operation& call : request.call()) {
    HR_RETURN_IF_ERROR(CheckStop());
    if (!calls.Begin()) break;
    QueueResponse outputs;
    if (const Status s = Run(call, &outputs); !s.ok()) {
      calls.End(s);
      continue;
    }
    tensorflow::RunStepResponse done;
    for (auto& t : *outputs.mutable_tensor()) {
      auto* named = done.add_tensor();
      named->set_name(absl::StrCat(done.tensor_size() - 1));
      *named->mutable_tensor() = std::move(t);
    }
    calls.End(std::move(done));
  }
  return OkStatus();
}

Status EagerContext::Do(const QueueItem& item, QueueResponse* response) {
  switch (item.item_case()) {
    case QueueItem::kHandleToDecref:
      return handles_->Drop(item.handle_to_decref().op_id(),
                            item.handle_to_decref().output_num());
    case QueueItem::kOperation:
      return Run(item.operation(), response);
    case QueueItem::kSendTensor:
      return Receive(item.send_tensor());
    case QueueItem::kRegisterFunction:
      return Register(item.register_function());
    case QueueItem::kCleanupFunction:
      worker_->CleanUp(item.cleanup_function().step_id());
      return OkStatus();
    case QueueItem::kSyncRemoteExecutorForStream:
      return OkStatus();  // what came before has been done
    case QueueItem::kSendPackedHandle:
      if (item.send_packed_handle().handles_size() == 0) {
        return InvalidArgument("Handles should not be empty.");
      }
      return Unimplemented(
          "SendPackedHandle: tensors of several devices as one are not "
          "supported");
    case QueueItem::kRemoveFunction:
      return ops_->RemoveFunction(item.remove_function().function_name());
    case QueueItem::ITEM_NOT_SET:
      break;
  }
  return OkStatus();  // as upstream has it
}

StatusOr<DeviceName> EagerContext::DeviceOf(const std::string& name) const {
  DeviceName device;
  if (!DeviceName::Parse(name, &device)) {
    return InvalidArgument("Malformed device specification '", name, "'");
  }
  device = device.OrElse(task_);
  if (!device.type) device.type = "CPU";
  if (!device.id) device.id = 0;
  std::string known;
  for (const auto& own : worker_->devices()) {
    DeviceName there;
    if (!DeviceName::Parse(own.name(), &there)) continue;
    there = {task_.job, task_.replica, task_.task, there.type, there.id};
    if (there == device) return device;
    absl::StrAppend(&known, known.empty() ? "" : ", ", there.ToString());
  }
  return InvalidArgument(
      "Could not satisfy device specification '", device.ToString(),
      "'. enable_soft_placement=0. Supported device types [CPU]. All available "
      "devices [",
      known, "].");
}

StatusOr<EagerContext::Inputs> EagerContext::InputsOf(
    const Operation& operation) {
  Inputs inputs;
  for (const Operation::Input& input : operation.op_inputs()) {
    KeptArgument& kept = inputs.kept.emplace_back();
    if (input.has_tensor()) {
      HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(input.tensor()));
      inputs.tensors.push_back(std::move(t));
      continue;
    }
    const RemoteTensorHandle& handle = input.remote_handle();
    DeviceName device;
    // What is nowhere is here.
    if (DeviceName::Parse(handle.device(), &device) && device.job &&
        !device.OrElse(task_).SameTask(task_)) {
      kept = {device, handle.op_id(), handle.output_num()};
      inputs.spread = true;
      continue;
    }
    HR_ASSIGN_OR_RETURN(Tensor t,
                        handles_->Get(handle.op_id(), handle.output_num()));
    inputs.tensors.push_back(std::move(t));
  }
  return inputs;
}

StatusOr<std::vector<Tensor>> EagerContext::InputsHere(
    const Operation& operation) {
  HR_ASSIGN_OR_RETURN(Inputs inputs, InputsOf(operation));
  if (!inputs.spread) return std::move(inputs.tensors);
  for (const KeptArgument& kept : inputs.kept) {
    if (kept.here()) continue;
    return Unimplemented(operation.name(), " on ", task_.ToString(),
                         " takes what lies on ", kept.task.ToString(),
                         ": only functions may");
  }
  return Internal("no input lies elsewhere");
}

StatusOr<bool> EagerContext::RunEnd(const Operation& operation,
                                    const std::vector<Tensor>& inputs,
                                    std::vector<Tensor>* outputs) {
  const OpDef* def = FindOp(operation.name());
  if (def == nullptr) return false;
  if (def->Is(kSendRole)) {
    if (inputs.size() != 1) {
      return InvalidArgument(operation.name(), " takes one input");
    }
    HR_ASSIGN_OR_RETURN(const RendezvousKey key, KeyOf(operation));
    HR_RETURN_IF_ERROR(rendezvous_->Send(key, {inputs[0], false}));
    return true;
  }
  if (!def->Is(kReceiveRole)) return false;
  HR_ASSIGN_OR_RETURN(const RendezvousKey key, KeyOf(operation));
  SentValue value;
  HR_RETURN_IF_ERROR(headrace::Receive(*rendezvous_, key, &value));
  if (value.dead) {
    return InvalidArgument("The tensor returned for ", key.edge,
                           " was not valid.");
  }
  outputs->push_back(std::move(value.tensor));
  return true;
}

Status EagerContext::RunOp(const Operation& operation,
                           std::vector<Tensor> inputs,
                           std::vector<Tensor>* outputs) {
  HR_ASSIGN_OR_RETURN(const bool done, RunEnd(operation, inputs, outputs));
  if (done) return OkStatus();
  const OpDef* def = FindOp(operation.name());
  if (def == nullptr) {
    HR_RETURN_IF_ERROR(CheckRefused(operation.name()));
    return NotFound("'", operation.name(),
                    "' is neither a type of a primitive operation nor a name "
                    "of a function registered in binary running on ",
                    HostName(),
                    ". Make sure the operation or function is registered in "
                    "the binary running in this process.");
  }
  HR_ASSIGN_OR_RETURN(const AttrMap attrs, AttrsOf(*def, operation));
  std::vector<DType> types;
  for (const Tensor& t : inputs) types.push_back(t.dtype());
  HR_ASSIGN_OR_RETURN(const ResolvedOpPtr op,
                      ops_->Resolve(*def, types, attrs));
  HR_RETURN_IF_ERROR(CheckCall(*op, ops_->library()));
  return ops_->Run(op, inputs, outputs);
}

Status EagerContext::RunSpread(const Operation& operation, Inputs inputs,
                               std::vector<Tensor>* outputs) {
  std::string key = operation.name();
  for (const KeptArgument& kept : inputs.kept) {
    absl::StrAppend(&key, ";", kept.task.ToString(), ",", kept.op, ",",
                    kept.output);
  }
  std::shared_ptr<SpreadFunction> spread;
  {
    MutexLock lock(mutex_);
    const auto it = spread_.find(key);
    if (it != spread_.end()) spread = it->second;
  }
  if (!spread) {
    const FunctionPtr f = ops_->FindFunction(operation.name());
    if (!f) return NotFound("Function ", operation.name(), " is gone");
    HR_ASSIGN_OR_RETURN(
        spread, SpreadFunction::Make(worker_, session_, *f, ops_->library(),
                                     inputs.kept));
    MutexLock lock(mutex_);
    if (spread_.size() >= kMostSpread) spread_.clear();
    spread_[key] = spread;
  }
  return spread->Run(std::move(inputs.tensors), outputs);
}

Status EagerContext::Run(const Operation& operation, QueueResponse* response) {
  HR_RETURN_IF_ERROR(DeviceOf(operation.device()).status());
  std::vector<Tensor> outputs;
  if (ops_->FindFunction(operation.name())) {
    HR_ASSIGN_OR_RETURN(Inputs inputs, InputsOf(operation));
    HR_RETURN_IF_ERROR(
        inputs.spread ? RunSpread(operation, std::move(inputs), &outputs)
                      : ops_->Call(operation.name(),
                                   absl::MakeSpan(inputs.tensors), &outputs));
  } else {
    HR_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, InputsHere(operation));
    HR_RETURN_IF_ERROR(RunOp(operation, std::move(inputs), &outputs));
  }
  if (operation.id() == kNoOp) {
    for (const Tensor& t : outputs) {
      HR_RETURN_IF_ERROR(TensorToProto(t, response->add_tensor()));
    }
    return OkStatus();
  }
  for (const Tensor& t : outputs) {
    ShapeToProto(t.shape(), response->add_shape());
    // Empty: where the operation is.
    if (operation.is_function()) response->add_device();
  }
  return handles_->Put(operation.id(), std::move(outputs));
}

Status EagerContext::RunComponent(const RunComponentFunctionRequest& request,
                                  const CancellationToken* token,
                                  RunComponentFunctionResponse* response) {
  const Operation& operation = request.operation();
  if (!operation.is_component_function()) {
    return Internal(
        "RunComponentFunction request can only be used to execute component "
        "functions.");
  }
  if (!ops_->FindFunction(operation.name())) {
    return Internal(
        "Could not find function library for registered component function: ",
        operation.name());
  }
  HR_RETURN_IF_ERROR(DeviceOf(operation.device()).status());
  HR_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, InputsHere(operation));
  HR_ASSIGN_OR_RETURN(const auto rendezvous,
                      worker_->Meet(session_, operation.func_step_id()));
  const StopScope closing(&closing_);
  const StopScope stop(token);
  const RendezvousScope meeting(rendezvous.get());
  std::vector<Tensor> outputs;
  const Status s =
      ops_->Call(operation.name(), absl::MakeSpan(inputs), &outputs);
  if (!s.ok()) {
    rendezvous->Abort(s);  // who waits for what it was to send
    return s;
  }
  for (const Tensor& t : outputs) {
    ShapeToProto(t.shape(), response->add_shape());
  }
  return handles_->Put(operation.id(),
                       std::vector<int>(request.output_num().begin(),
                                        request.output_num().end()),
                       std::move(outputs));
}

Status EagerContext::Register(const RegisterFunctionOp& item) {
  tensorflow::FunctionDefLibrary library = item.library();
  *library.add_function() = item.function_def();
  const Status s = ops_->AddFunctions(library);
  if (!absl::IsUnimplemented(s)) return s;
  // Clients tell all tasks of all their functions: one that this task does not
  // know how to run matters when it is called.
  MutexLock lock(mutex_);
  if (refused_.size() >= kMostRefused) refused_.clear();
  refused_[item.function_def().signature().name()] = s;
  return OkStatus();
}

Status EagerContext::CheckRefused(const std::string& function) {
  MutexLock lock(mutex_);
  const auto it = refused_.find(function);
  return it == refused_.end() ? OkStatus() : it->second;
}

Status EagerContext::Receive(const SendTensorOp& item) {
  HR_RETURN_IF_ERROR(DeviceOf(item.device_name()).status());
  std::vector<Tensor> tensors;
  for (const auto& proto : item.tensors()) {
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(proto));
    tensors.push_back(std::move(t));
  }
  return handles_->Put(item.op_id(), std::move(tensors));
}

}  // namespace headrace::distributed
