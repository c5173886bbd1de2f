#include "distributed/eager/device_place.h"

#include <algorithm>
#include <utility>

#include "base/threads.h"
#include "distributed/eager/called_functions.h"
#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/pull.h"
#include "graph/attr_proto.h"
#include "graph/export.h"
#include "graph/graph.h"
#include "headrace/eager.pb.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {

using namespace tensorflow::eager;  // NOLINT: the messages of the service

namespace {

// The number of operations whose outputs come with the answer.
constexpr int64_t kNoOp = -1;
// A stop is not felt to be late.
constexpr std::chrono::milliseconds kLooksForStop{20};

// The tensors on their way here. Those that bring them may outlive it.
class Fetching {
 public:
  explicit Fetching(size_t count) : tensors(count) {}

  void Come(size_t i, StatusOr<SentValue> value) {
    MutexLock lock(mutex);
    if (value.ok()) {
      tensors[i] = std::move(value->tensor);
    } else if (error.ok()) {
      error = value.status();
    }
    ++come;
    changed.NotifyAll();
  }
  // Waits for so many, as CheckStop allows.
  Status Wait(size_t count) {
    while (true) {
      {
        MutexLock lock(mutex);
        if (come < count && error.ok()) changed.WaitFor(mutex, kLooksForStop);
        if (!error.ok()) return error;
        if (come == count) return OkStatus();
      }
      HR_RETURN_IF_ERROR(CheckStop());
    }
  }

  Mutex mutex;
  CondVar changed;
  std::vector<Tensor> tensors ABSL_GUARDED_BY(mutex);
  size_t come ABSL_GUARDED_BY(mutex) = 0;
  Status error ABSL_GUARDED_BY(mutex);
};

// What is known of the resource that an op makes.
std::shared_ptr<const HandleData> DataOf(const AttrMap& attrs) {
  const DType* dtype = attrs.Get<DType>("dtype");
  const Shape* shape = attrs.Get<Shape>("shape");
  if (dtype == nullptr || shape == nullptr) return nullptr;
  return std::make_shared<HandleData>(HandleData{{*dtype, *shape}});
}

Status StaysHere(StringView what, DType dtype, const std::string& device) {
  return InvalidArgument(
      what, " is a ", DTypeName(dtype),
      " of this process, which other tasks cannot use: make it under the "
      "tf.device where it is to be used (",
      device, ")");
}

}  // namespace

// One op or function that is sent to a task.
struct DevicePlace::Sending {
  int64_t op = 0;
  Operation operation;
  FunctionsByName functions;  // that it needs
  std::vector<DType> output_types;
  std::shared_ptr<const HandleData> data;  // of its first output
};

// An output on its way here.
struct DevicePlace::Coming {
  size_t output;
  std::string key;
};

Status DevicePlace::SetInputs(absl::Span<const Tensor* const> inputs,
                              Sending* run) {
  Operation& operation = run->operation;
  for (const Tensor* t : inputs) {
    auto* input = operation.add_op_inputs();
    if (const RemoteName* name = RemoteNameOf(*t)) {
      const auto* here = dynamic_cast<const NameHere*>(name);
      if (here == nullptr) return Internal("a name of an unknown task");
      here->handle().Write(input->mutable_remote_handle());
      continue;
    }
    if (!TravelsByValue(t->dtype())) {
      return StaysHere(absl::StrCat(operation.name(), ": input ",
                                    operation.op_inputs_size() - 1),
                       t->dtype(), device());
    }
    const RemoteHandlePtr handle = FindHandle(*t);
    if (handle && handle->Of(*task_)) {
      handle->Write(input->mutable_remote_handle());
    } else {
      HR_RETURN_IF_ERROR(TensorToProto(*t, input->mutable_tensor()));
    }
  }
  return OkStatus();
}

Status DevicePlace::Run(const ResolvedOp& op,
                        absl::Span<const Tensor* const> inputs,
                        absl::Span<Tensor> outputs) {
  if (IsFunctionCall(op.def())) {
    const FuncRef* called = op.attrs().Get<FuncRef>("f");
    if (called != nullptr) {
      HR_ASSIGN_OR_RETURN(const FunctionPtr f,
                          FindFunction(library_.get(), called->name));
      std::vector<Tensor> results;
      HR_RETURN_IF_ERROR(Call(f, inputs, &results));
      if (results.size() != outputs.size()) {
        return Internal(f->name, " has ", results.size(), " results, not ",
                        outputs.size());
      }
      std::move(results.begin(), results.end(), outputs.begin());
      return OkStatus();
    }
  }
  Sending run;
  run.operation.set_name(op.name());
  for (const auto& [name, value] : op.attrs()) {
    HR_RETURN_IF_ERROR(
        AttrToProto(value, &(*run.operation.mutable_attrs())[name]));
  }
  HR_RETURN_IF_ERROR(AddNamed(op.attrs(), library_.get(), &run.functions));
  run.output_types.assign(op.output_types().begin(), op.output_types().end());
  run.data = DataOf(op.attrs());
  HR_RETURN_IF_ERROR(SetInputs(inputs, &run));
  return Send(run, outputs);
}

Status DevicePlace::Call(const FunctionPtr& function,
                         absl::Span<const Tensor* const> inputs,
                         std::vector<Tensor>* outputs) {
  Sending run;
  run.operation.set_name(function->name);
  run.operation.set_is_function(true);
  run.functions.emplace(function->name, function);
  HR_RETURN_IF_ERROR(
      AddCalled(*function->body, library_.get(), &run.functions));
  run.output_types = function->result_types();
  HR_RETURN_IF_ERROR(SetInputs(inputs, &run));
  outputs->resize(run.output_types.size());
  return Send(run, absl::MakeSpan(*outputs));
}

Status DevicePlace::Take(const Tensor& t, Tensor* there) {
  if (const RemoteName* name = RemoteNameOf(t)) {
    if (name->place()->device() == device()) {
      *there = t;
      return OkStatus();
    }
    return InvalidArgument("a ", DTypeName(t.dtype()), " of ",
                           name->place()->device(), " cannot be copied to ",
                           device());
  }
  if (!TravelsByValue(t.dtype())) {
    return StaysHere("what is to be copied", t.dtype(), device());
  }
  const RemoteHandlePtr known = FindHandle(t);
  if (known && known->Of(*task_) && known->device() == device()) {
    *there = t;
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(context_->CheckOpen(*task_, device()));
  EnqueueRequest request;
  request.set_context_id(context_->id());
  AddDropped(request.mutable_queue());
  const int64_t op = context_->NextOp();
  auto* sent = request.add_queue()->mutable_send_tensor();
  sent->set_op_id(op);
  sent->set_device_name(device());
  HR_RETURN_IF_ERROR(TensorToProto(t, sent->add_tensors()));
  HR_RETURN_IF_ERROR(Enqueue(request, {}));
  *there = Remembered(t, HandleOf(op, 0, t.dtype()));
  return OkStatus();
}

StatusOr<std::unique_ptr<StepsTogether>> CallTogether(
    const std::shared_ptr<RemotePlace>& place,
    absl::Span<const FunctionCall> calls, std::chrono::microseconds within) {
  const auto device = std::dynamic_pointer_cast<DevicePlace>(place);
  if (!device) return std::unique_ptr<StepsTogether>();
  return device->Start(calls, within);
}

StatusOr<std::unique_ptr<StepsTogether>> DevicePlace::Start(
    absl::Span<const FunctionCall> calls, std::chrono::microseconds within) {
  HR_RETURN_IF_ERROR(context_->CheckOpen(*task_, device()));
  RunCallsRequest request;
  std::vector<std::vector<std::string>> outputs;
  for (const FunctionCall& call : calls) {
    const std::vector<DType> types = call.function->result_types();
    // What a function calls is told with it.
    if (!Knows(call.function->name) ||
        !std::all_of(types.begin(), types.end(), TravelsByValue)) {
      return std::unique_ptr<StepsTogether>();
    }
    Sending run;
    run.operation.set_name(call.function->name);
    run.operation.set_is_function(true);
    run.operation.set_id(kNoOp);
    run.operation.set_device(device());
    std::vector<const Tensor*> inputs;
    for (const Tensor& t : call.inputs) inputs.push_back(&t);
    HR_RETURN_IF_ERROR(SetInputs(inputs, &run));
    *request.add_call() = std::move(run.operation);
    std::vector<std::string>& names = outputs.emplace_back();
    for (size_t i = 0; i < types.size(); ++i) names.push_back(absl::StrCat(i));
  }
  request.set_context_id(context_->id());
  request.set_request_id(NewRequestId());
  request.set_begin_within_us(within.count());
  AddDropped(request.mutable_first());
  return StepsTogether::Start(
      task_->channel,
      {eager_service::kRunCalls.path, eager_service::kGiveBackCalls.path},
      request.request_id(), WriteMessage(request), std::move(outputs));
}

bool DevicePlace::Knows(const std::string& function) {
  MutexLock lock(task_->mutex);
  const auto it = task_->functions.find(function);
  return it != task_->functions.end() && it->second;
}

// Word of what nobody holds any more.
void DevicePlace::AddDropped(
    google::protobuf::RepeatedPtrField<QueueItem>* items) {
  MutexLock lock(task_->mutex);
  for (const auto& [op, output] : std::exchange(task_->dropped, {})) {
    auto* drop = items->Add()->mutable_handle_to_decref();
    drop->set_op_id(op);
    drop->set_output_num(output);
  }
}

// The functions that the task does not know, which are `fresh`.
Status DevicePlace::AddFunctions(const Sending& run, EnqueueRequest* request,
                                 std::vector<std::string>* fresh) {
  MutexLock lock(task_->mutex);
  const auto is_known = [&](const std::string& name)
                            ABSL_NO_THREAD_SAFETY_ANALYSIS {
                              const auto it = task_->functions.find(name);
                              return it != task_->functions.end() && it->second;
                            };
  for (const auto& [name, f] : run.functions) {
    if (!is_known(name)) fresh->push_back(name);
  }
  if (fresh->empty()) return OkStatus();
  Graph graph;
  for (const std::string& name : *fresh) {
    HR_RETURN_IF_ERROR(graph.library()->Add(run.functions.at(name)));
  }
  ExportOptions options;
  options.effect_order = true;
  tensorflow::GraphDef exported;
  HR_RETURN_IF_ERROR(ExportGraph(graph, options, &exported));
  auto* item = request->add_queue()->mutable_register_function();
  for (auto& f : *exported.mutable_library()->mutable_function()) {
    // Those that the task knows are among what these call.
    if (is_known(f.signature().name())) continue;
    if (!item->has_function_def()) {
      *item->mutable_function_def() = std::move(f);
    } else {
      *item->mutable_library()->add_function() = std::move(f);
    }
  }
  for (const std::string& name : *fresh) task_->functions[name] = false;
  return OkStatus();
}

// Has the task send the outputs here that come here.
std::vector<DevicePlace::Coming> DevicePlace::AddSends(
    const Sending& run, EnqueueRequest* request) {
  std::vector<Coming> coming;
  DeviceName from, to = context_->own();
  to.type = "CPU";
  to.id = 0;
  if (!DeviceName::Parse(device(), &from)) return coming;
  for (size_t i = 0; i < run.output_types.size(); ++i) {
    if (!TravelsByValue(run.output_types[i])) continue;
    const std::string edge = absl::StrCat("edge_", run.op, "_", i);
    coming.push_back(
        {i, RendezvousKey::Of(from, device_->incarnation(), to, edge).text});
    auto* send = request->add_queue()->mutable_operation();
    send->set_name("_Send");
    send->set_id(context_->NextOp());
    send->set_device(device());
    auto* input = send->add_op_inputs()->mutable_remote_handle();
    input->set_op_id(run.op);
    input->set_output_num(static_cast<int>(i));
    input->set_device(device());
    input->set_op_device(device());
    input->set_dtype(TypeToProto(run.output_types[i]));
    auto& attrs = *send->mutable_attrs();
    attrs["T"].set_type(TypeToProto(run.output_types[i]));
    attrs["tensor_name"].set_s(edge);
    attrs["send_device"].set_s(device());
    attrs["send_device_incarnation"].set_i(
        static_cast<int64_t>(device_->incarnation()));
    attrs["recv_device"].set_s(to.ToString());
    attrs["client_terminated"].set_b(false);
  }
  return coming;
}

Status DevicePlace::Enqueue(const EnqueueRequest& request,
                            const std::vector<std::string>& fresh) {
  // Who stops waiting has the task stop, too.
  Calls call;
  call.Start(*task_->channel, eager_service::kEnqueue.path, request, {});
  HR_RETURN_IF_ERROR(call.Wait());
  MutexLock lock(task_->mutex);
  for (const std::string& name : fresh) task_->functions[name] = true;
  return OkStatus();
}

RemoteHandlePtr DevicePlace::HandleOf(int64_t op, size_t output, DType dtype) {
  return std::make_shared<const RemoteHandle>(task_, device_, op,
                                              static_cast<int>(output), dtype);
}

Status DevicePlace::Send(Sending& run, absl::Span<Tensor> outputs) {
  HR_RETURN_IF_ERROR(context_->CheckOpen(*task_, device()));
  EnqueueRequest request;
  request.set_context_id(context_->id());
  std::vector<std::string> fresh;
  AddDropped(request.mutable_queue());
  HR_RETURN_IF_ERROR(AddFunctions(run, &request, &fresh));
  run.op = context_->NextOp();
  run.operation.set_id(run.op);
  run.operation.set_device(device());
  *request.add_queue()->mutable_operation() = std::move(run.operation);
  const std::vector<Coming> coming = AddSends(run, &request);
  const auto fetching = std::make_shared<Fetching>(coming.size());
  std::vector<std::function<void()>> ends;
  for (size_t i = 0; i < coming.size(); ++i) {
    ends.push_back(Pull(task_->channel, static_cast<int64_t>(context_->id()),
                        coming[i].key, nullptr,
                        [fetching, i](StatusOr<SentValue> value) {
                          fetching->Come(i, std::move(value));
                        }));
  }
  Status s = Enqueue(request, fresh);
  if (s.ok()) s = fetching->Wait(coming.size());
  if (!s.ok()) {
    for (const auto& end : ends) end();
    return s;
  }
  for (size_t i = 0; i < run.output_types.size(); ++i) {
    const DType dtype = run.output_types[i];
    if (TravelsByValue(dtype)) continue;
    outputs[i] = NameOf(dtype, HandleOf(run.op, i, dtype), shared_from_this(),
                        i == 0 ? run.data : nullptr);
  }
  MutexLock lock(fetching->mutex);
  for (size_t i = 0; i < coming.size(); ++i) {
    const size_t output = coming[i].output;
    outputs[output] =
        Remembered(std::move(fetching->tensors[i]),
                   HandleOf(run.op, output, run.output_types[output]));
  }
  return OkStatus();
}

}  // namespace headrace::distributed
