#include "distributed/eager/remote_context.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "base/threads.h"
#include "distributed/eager/called_functions.h"
#include "distributed/request_ids.h"
#include "distributed/wire/methods.h"
#include "distributed/worker/pull.h"
#include "graph/attr_proto.h"
#include "graph/export.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {

using namespace tensorflow::eager;  // NOLINT: the messages of the service
using tensorflow::DeviceAttributes;

namespace {

// What closing may take: tasks may be gone.
constexpr std::chrono::seconds kCloseTime{2};
// A stop is not felt to be late.
constexpr std::chrono::milliseconds kLooksForStop{20};

CallOptions Until(Clock::time_point deadline) {
  CallOptions options;
  options.deadline = deadline;
  return options;
}

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

// Whether the value comes here; of others only a name does.
bool Comes(DType dtype) {
  return dtype != DType::kResource && dtype != DType::kVariant;
}

}  // namespace

struct RemoteContext::Task {
  DeviceName name;
  std::shared_ptr<Channel> channel;
  std::vector<DeviceAttributes> devices;
  Mutex mutex;
  std::set<std::string> functions ABSL_GUARDED_BY(mutex);  // that it knows
  std::vector<std::pair<int64_t, int>> dropped ABSL_GUARDED_BY(mutex);
};

// A tensor that a task keeps for this process, until nobody holds it.
class RemoteHandle {
 public:
  RemoteHandle(std::shared_ptr<RemoteContext> context,
               RemoteContext::Task* task, const DeviceAttributes* device,
               int64_t op, int output, DType dtype)
      : context_(std::move(context)),
        task_(task),
        device_(device),
        op_(op),
        output_(output),
        dtype_(dtype) {}
  ~RemoteHandle() {
    MutexLock lock(task_->mutex);
    task_->dropped.emplace_back(op_, output_);
  }
  RemoteHandle(const RemoteHandle&) = delete;

  const std::string& device() const { return device_->name(); }
  bool Of(const RemoteContext::Task& task) const { return task_ == &task; }
  void Write(RemoteTensorHandle* out) const {
    out->set_op_id(op_);
    out->set_output_num(output_);
    out->set_device(device_->name());
    out->set_op_device(device_->name());
    out->set_dtype(TypeToProto(dtype_));
  }
  const std::shared_ptr<RemoteContext>& context() const { return context_; }

 private:
  const std::shared_ptr<RemoteContext> context_;
  RemoteContext::Task* const task_;
  const DeviceAttributes* const device_;
  const int64_t op_;
  const int output_;
  const DType dtype_;
};

namespace {

using HandlePtr = std::shared_ptr<const RemoteHandle>;

// Of the tensors that came from tasks: which task still has each, by its
// memory.
struct Known {
  struct Entry {
    DType dtype;
    Shape shape;
    HandlePtr handle;
  };
  Mutex mutex;
  absl::flat_hash_map<const void*, Entry> tensors ABSL_GUARDED_BY(mutex);
};
Known& TheKnown() {
  static Known* const known = new Known;
  return *known;
}

HandlePtr FindHandle(const Tensor& t) {
  if (!t.has_buffer()) return nullptr;
  MutexLock lock(TheKnown().mutex);
  const auto it = TheKnown().tensors.find(t.raw());
  if (it == TheKnown().tensors.end() || it->second.dtype != t.dtype() ||
      it->second.shape != t.shape()) {
    return nullptr;
  }
  return it->second.handle;
}

void Forget(void* owner) {
  const std::unique_ptr<Tensor> tensor(static_cast<Tensor*>(owner));
  Known::Entry last;  // ends behind the lock
  MutexLock lock(TheKnown().mutex);
  const auto it = TheKnown().tensors.find(tensor->raw());
  if (it == TheKnown().tensors.end()) return;
  last = std::move(it->second);
  TheKnown().tensors.erase(it);
}

// The same value, of which is known where else it is.
Tensor Remembered(Tensor t, HandlePtr handle) {
  if (!t.has_buffer() || t.num_elements() == 0) return t;
  auto owner = std::make_unique<Tensor>(std::move(t));
  void* const data = owner->raw();
  {
    MutexLock lock(TheKnown().mutex);
    TheKnown().tensors[data] = {owner->dtype(), owner->shape(),
                                std::move(handle)};
  }
  const size_t bytes = owner->bytes();
  const DType dtype = owner->dtype();
  const Shape shape = owner->shape();
  return Tensor::Wrap(dtype, shape, data, bytes, owner.release(), Forget);
}

}  // namespace

// A device of a task, as ops are sent to it.
class DevicePlace : public RemotePlace,
                    public std::enable_shared_from_this<DevicePlace> {
 public:
  DevicePlace(std::shared_ptr<RemoteContext> context, RemoteContext::Task* task,
              const DeviceAttributes* device)
      : context_(std::move(context)), task_(task), device_(device) {}

  const std::string& device() const override { return device_->name(); }
  Status Run(const ResolvedOp& op, absl::Span<const Tensor* const> inputs,
             absl::Span<Tensor> outputs) override;
  Status Call(const FunctionPtr& function,
              absl::Span<const Tensor* const> inputs,
              std::vector<Tensor>* outputs) override;

 private:
  const std::shared_ptr<RemoteContext> context_;
  RemoteContext::Task* const task_;
  const DeviceAttributes* const device_;
};

namespace {

// A device that no task has.
class NoPlace : public RemotePlace {
 public:
  explicit NoPlace(std::string device) : device_(std::move(device)) {}
  const std::string& device() const override { return device_; }
  Status Run(const ResolvedOp&, absl::Span<const Tensor* const>,
             absl::Span<Tensor>) override {
    return InvalidArgument(device_, " unknown device.");
  }
  Status Call(const FunctionPtr&, absl::Span<const Tensor* const>,
              std::vector<Tensor>*) override {
    return InvalidArgument(device_, " unknown device.");
  }

 private:
  const std::string device_;
};

// What this process holds of a resource or variant of a task.
class NameHere : public RemoteName {
 public:
  NameHere(HandlePtr handle, std::shared_ptr<RemotePlace> place)
      : handle_(std::move(handle)), place_(std::move(place)) {}
  const std::shared_ptr<RemotePlace>& place() const override { return place_; }
  const RemoteHandle& handle() const { return *handle_; }

 private:
  const HandlePtr handle_;
  const std::shared_ptr<RemotePlace> place_;
};

class RemoteResource : public Resource, public NameHere {
 public:
  using NameHere::NameHere;
  std::string DebugString() const override {
    return absl::StrCat("a resource of ", handle().device());
  }
};

class RemoteVariant : public VariantValue, public NameHere {
 public:
  using NameHere::NameHere;
  StringView type_name() const override { return "headrace::RemoteVariant"; }
  std::string DebugString() const override {
    return absl::StrCat("a variant of ", handle().device());
  }
};

// What is known of the resource that an op makes.
std::shared_ptr<const HandleData> DataOf(const AttrMap& attrs) {
  const DType* dtype = attrs.Get<DType>("dtype");
  const Shape* shape = attrs.Get<Shape>("shape");
  if (dtype == nullptr || shape == nullptr) return nullptr;
  return std::make_shared<HandleData>(HandleData{{*dtype, *shape}});
}

Tensor NameOf(DType dtype, const HandlePtr& handle,
              const std::shared_ptr<RemotePlace>& place,
              std::shared_ptr<const HandleData> data) {
  if (dtype == DType::kVariant) {
    return Tensor::Scalar<Variant>(
        Variant(std::make_shared<RemoteVariant>(handle, place)));
  }
  ResourceHandle made;
  made.resource = std::make_shared<RemoteResource>(handle, place);
  made.device = handle->device();
  made.data = std::move(data);
  return Tensor::Scalar<ResourceHandle>(std::move(made));
}

}  // namespace

// One op or function that is sent to a task.
struct RemoteContext::Run {
  int64_t op = 0;
  Operation operation;
  FunctionsByName functions;  // that it needs
  std::vector<DType> output_types;
  std::shared_ptr<const HandleData> data;  // of its first output
  std::shared_ptr<RemotePlace> place;
  std::vector<Tensor> outputs;

  Status SetInputs(const Task& task, absl::Span<const Tensor* const> inputs);
};

Status RemoteContext::Run::SetInputs(const Task& task,
                                     absl::Span<const Tensor* const> inputs) {
  for (const Tensor* t : inputs) {
    auto* input = operation.add_op_inputs();
    if (const RemoteName* name = RemoteNameOf(*t)) {
      const auto* here = dynamic_cast<const NameHere*>(name);
      if (here == nullptr) return Internal("a name of an unknown task");
      here->handle().Write(input->mutable_remote_handle());
      continue;
    }
    if (!Comes(t->dtype())) {
      return InvalidArgument(
          operation.name(), " on ", place->device(), ": input ",
          operation.op_inputs_size() - 1, " is a ", DTypeName(t->dtype()),
          " of this process, which other tasks cannot use: make it under the "
          "tf.device where it is to be used");
    }
    const HandlePtr handle = FindHandle(*t);
    if (handle && handle->Of(task)) {
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
                          FindFunction(nullptr, called->name));
      std::vector<Tensor> results;
      HR_RETURN_IF_ERROR(Call(f, inputs, &results));
      std::move(results.begin(), results.end(), outputs.begin());
      return OkStatus();
    }
  }
  RemoteContext::Run run;
  run.place = shared_from_this();
  run.operation.set_name(op.name());
  for (const auto& [name, value] : op.attrs()) {
    HR_RETURN_IF_ERROR(
        AttrToProto(value, &(*run.operation.mutable_attrs())[name]));
  }
  HR_RETURN_IF_ERROR(AddNamed(op.attrs(), nullptr, &run.functions));
  run.output_types.assign(op.output_types().begin(), op.output_types().end());
  run.data = DataOf(op.attrs());
  HR_RETURN_IF_ERROR(run.SetInputs(*task_, inputs));
  HR_RETURN_IF_ERROR(context_->Execute(*task_, *device_, run));
  std::move(run.outputs.begin(), run.outputs.end(), outputs.begin());
  return OkStatus();
}

Status DevicePlace::Call(const FunctionPtr& function,
                         absl::Span<const Tensor* const> inputs,
                         std::vector<Tensor>* outputs) {
  RemoteContext::Run run;
  run.place = shared_from_this();
  run.operation.set_name(function->name);
  run.operation.set_is_function(true);
  run.functions.emplace(function->name, function);
  HR_RETURN_IF_ERROR(AddCalled(*function->body, nullptr, &run.functions));
  run.output_types = function->result_types();
  HR_RETURN_IF_ERROR(run.SetInputs(*task_, inputs));
  HR_RETURN_IF_ERROR(context_->Execute(*task_, *device_, run));
  *outputs = std::move(run.outputs);
  return OkStatus();
}

// What comes before the op: word of what nobody holds any more, and the
// functions that the task does not know, which are `fresh`.
Status RemoteContext::AddBefore(Task& task, const Run& run,
                                EnqueueRequest* request,
                                std::vector<std::string>* fresh) {
  MutexLock lock(task.mutex);
  for (const auto& [op, output] : std::exchange(task.dropped, {})) {
    auto* drop = request->add_queue()->mutable_handle_to_decref();
    drop->set_op_id(op);
    drop->set_output_num(output);
  }
  for (const auto& [name, f] : run.functions) {
    if (!task.functions.contains(name)) fresh->push_back(name);
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
    if (task.functions.contains(f.signature().name())) continue;
    if (!item->has_function_def()) {
      *item->mutable_function_def() = std::move(f);
    } else {
      *item->mutable_library()->add_function() = std::move(f);
    }
  }
  return OkStatus();
}

// Has the task send the outputs here that come here.
std::vector<RemoteContext::Coming> RemoteContext::AddSends(
    const DeviceAttributes& device, const Run& run, EnqueueRequest* request) {
  std::vector<Coming> coming;
  DeviceName from, to = own_;
  to.type = "CPU";
  to.id = 0;
  if (!DeviceName::Parse(device.name(), &from)) return coming;
  for (size_t i = 0; i < run.output_types.size(); ++i) {
    if (!Comes(run.output_types[i])) continue;
    const std::string edge = absl::StrCat("edge_", run.op, "_", i);
    coming.push_back(
        {i, RendezvousKey::Of(from, device.incarnation(), to, edge).text});
    auto* send = request->add_queue()->mutable_operation();
    send->set_name("_Send");
    send->set_id(NextOp());
    send->set_device(device.name());
    auto* input = send->add_op_inputs()->mutable_remote_handle();
    input->set_op_id(run.op);
    input->set_output_num(static_cast<int>(i));
    input->set_device(device.name());
    input->set_op_device(device.name());
    input->set_dtype(TypeToProto(run.output_types[i]));
    auto& attrs = *send->mutable_attrs();
    attrs["T"].set_type(TypeToProto(run.output_types[i]));
    attrs["tensor_name"].set_s(edge);
    attrs["send_device"].set_s(device.name());
    attrs["send_device_incarnation"].set_i(
        static_cast<int64_t>(device.incarnation()));
    attrs["recv_device"].set_s(to.ToString());
    attrs["client_terminated"].set_b(false);
  }
  return coming;
}

Status RemoteContext::Execute(Task& task, const DeviceAttributes& device,
                              Run& run) {
  HR_RETURN_IF_ERROR(CheckOpen(device));
  EnqueueRequest request;
  request.set_context_id(id_);
  std::vector<std::string> fresh;
  HR_RETURN_IF_ERROR(AddBefore(task, run, &request, &fresh));
  run.op = NextOp();
  run.operation.set_id(run.op);
  run.operation.set_device(device.name());
  *request.add_queue()->mutable_operation() = std::move(run.operation);
  const std::vector<Coming> coming = AddSends(device, run, &request);
  const auto fetching = std::make_shared<Fetching>(coming.size());
  std::vector<std::function<void()>> ends;
  for (size_t i = 0; i < coming.size(); ++i) {
    ends.push_back(Pull(task.channel, static_cast<int64_t>(id_), coming[i].key,
                        [fetching, i](StatusOr<SentValue> value) {
                          fetching->Come(i, std::move(value));
                        }));
  }
  EnqueueResponse response;
  Status s = CallAndWait(*task.channel, eager_service::kEnqueue.path, request,
                         &response, {});
  if (s.ok()) {
    MutexLock lock(task.mutex);
    task.functions.insert(fresh.begin(), fresh.end());
  }
  if (s.ok()) s = fetching->Wait(coming.size());
  if (!s.ok()) {
    for (const auto& end : ends) end();
    return s;
  }
  run.outputs.resize(run.output_types.size());
  for (size_t i = 0; i < run.output_types.size(); ++i) {
    const DType dtype = run.output_types[i];
    if (Comes(dtype)) continue;
    run.outputs[i] = NameOf(dtype, HandleOf(task, device, run, i), run.place,
                            i == 0 ? run.data : nullptr);
  }
  MutexLock lock(fetching->mutex);
  for (size_t i = 0; i < coming.size(); ++i) {
    const size_t output = coming[i].output;
    run.outputs[output] = Remembered(std::move(fetching->tensors[i]),
                                     HandleOf(task, device, run, output));
  }
  return OkStatus();
}

Status RemoteContext::CheckOpen(const DeviceAttributes& device) {
  MutexLock lock(mutex_);
  if (!closed_) return OkStatus();
  return FailedPrecondition("the connection to ", device.name(),
                            " has been closed");
}

std::shared_ptr<const RemoteHandle> RemoteContext::HandleOf(
    Task& task, const DeviceAttributes& device, const Run& run, size_t output) {
  return std::make_shared<const RemoteHandle>(
      shared_from_this(), &task, &device, run.op, static_cast<int>(output),
      run.output_types[output]);
}

StatusOr<std::shared_ptr<RemoteContext>> RemoteContext::Connect(
    const RemoteOptions& options, const Dial& dial) {
  std::shared_ptr<RemoteContext> made(new RemoteContext);
  made->id_ = static_cast<uint64_t>(NewStepId());
  made->own_ =
      DeviceName::OfTask(options.def.job_name(), options.def.task_index());
  HR_ASSIGN_OR_RETURN(made->cluster_, Cluster::Make(options.def, dial));
  for (const auto& [key, address] : made->cluster_->tasks()) {
    auto task = std::make_unique<Task>();
    task->name = DeviceName::OfTask(key.first, key.second);
    if (task->name.SameTask(made->own_)) continue;
    task->channel = made->cluster_->ChannelOf(task->name);
    made->tasks_.push_back(std::move(task));
  }
  HR_RETURN_IF_ERROR(made->MeetTasks(options.deadline));
  HR_RETURN_IF_ERROR(made->MakeContexts(options));
  if (options.keep_alive_secs > 0) {
    HR_RETURN_IF_ERROR(made->KeepAlive(
        std::chrono::milliseconds(options.keep_alive_secs * 1000 / 3)));
  }
  return made;
}

Status RemoteContext::MeetTasks(Clock::time_point deadline) {
  CallOptions call = Until(deadline);
  call.wait_for_ready = true;
  Calls calls;
  for (const auto& task : tasks_) {
    calls.Start(*task->channel, worker::kGetStatus.path,
                WriteMessage(tensorflow::GetStatusRequest()), call,
                [task = task.get()](const Answer& answer) -> Status {
                  HR_RETURN_IF_ERROR(StatusOf(answer));
                  tensorflow::GetStatusResponse response;
                  HR_RETURN_IF_ERROR(ReadMessage(answer.body, &response));
                  for (const auto& d : response.device_attributes()) {
                    // The cluster's name for the task counts.
                    DeviceName name;
                    if (!DeviceName::Parse(d.name(), &name) || !name.full()) {
                      continue;
                    }
                    name.job = task->name.job;
                    name.replica = task->name.replica;
                    name.task = task->name.task;
                    task->devices.push_back(d);
                    task->devices.back().set_name(name.ToString());
                  }
                  return OkStatus();
                });
  }
  return calls.Wait();
}

Status RemoteContext::MakeContexts(const RemoteOptions& options) {
  Calls calls;
  for (const auto& task : tasks_) {
    CreateContextRequest request;
    *request.mutable_server_def() = options.def;
    request.mutable_server_def()->set_job_name(*task->name.job);
    request.mutable_server_def()->set_task_index(*task->name.task);
    request.set_keep_alive_secs(options.keep_alive_secs);
    request.mutable_version_def()->set_producer(kGraphVersion);
    request.set_context_id(id_);
    request.set_lazy_copy_remote_function_inputs(true);
    for (const auto& other : tasks_) {
      for (const auto& d : other->devices) {
        *request.add_cluster_device_attributes() = d;
      }
    }
    calls.Start(
        *task->channel, eager_service::kCreateContext.path,
        WriteMessage(request),
        Until(std::min(options.deadline,
                       Clock::now() + eager_service::kCreateContext.deadline)));
  }
  return calls.Wait();
}

Status RemoteContext::KeepAlive(std::chrono::milliseconds every) {
  MutexLock lock(mutex_);
  HR_ASSIGN_OR_RETURN(
      keeper_, threads::Start([this, every] {
        while (true) {
          {
            MutexLock inner(mutex_);
            if (!closed_) changed_.WaitFor(mutex_, every);
            if (closed_) return;
          }
          KeepAliveRequest request;
          request.set_context_id(id_);
          for (const auto& task : tasks_) {
            // A task that is gone is told by the ops that need it.
            task->channel->Start(
                eager_service::kKeepAlive.path, WriteMessage(request),
                Until(Clock::now() + eager_service::kKeepAlive.deadline),
                [](const Answer&) {});
          }
        }
      }));
  return OkStatus();
}

RemoteContext::~RemoteContext() { Close(); }

void RemoteContext::Close() {
  std::thread keeper;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    changed_.NotifyAll();
    keeper = std::move(keeper_);
  }
  if (keeper.joinable()) keeper.join();
  CloseContextRequest request;
  request.set_context_id(id_);
  std::vector<std::unique_ptr<Calls>> all;
  for (const auto& task : tasks_) {
    if (!task->channel) continue;
    all.push_back(std::make_unique<Calls>());
    all.back()->Start(*task->channel, eager_service::kCloseContext.path,
                      WriteMessage(request), Until(Clock::now() + kCloseTime));
  }
  for (const auto& calls : all) calls->Wait().IgnoreError();
}

std::vector<DeviceAttributes> RemoteContext::devices() const {
  std::vector<DeviceAttributes> all;
  for (const auto& task : tasks_) {
    all.insert(all.end(), task->devices.begin(), task->devices.end());
  }
  return all;
}

StatusOr<std::shared_ptr<RemotePlace>> RemoteContext::PlaceOf(
    const std::string& device) {
  DeviceName name;
  if (!DeviceName::Parse(device, &name)) {
    return InvalidArgument("Malformed device specification '", device, "'");
  }
  name = name.OrElse({own_.job, 0, 0, "CPU", 0});
  for (const auto& task : tasks_) {
    for (const auto& d : task->devices) {
      if (d.name() != name.ToString()) continue;
      return std::shared_ptr<RemotePlace>(
          std::make_shared<DevicePlace>(shared_from_this(), task.get(), &d));
    }
  }
  return std::shared_ptr<RemotePlace>(
      std::make_shared<NoPlace>(name.ToString()));
}

Status RemoteContext::CheckAlive(const DeviceName& name) {
  for (const auto& task : tasks_) {
    if (!task->name.SameTask(name)) continue;
    KeepAliveRequest request;
    request.set_context_id(id_);
    KeepAliveResponse response;
    return CallAndWait(
        *task->channel, eager_service::kKeepAlive.path, request, &response,
        Until(Clock::now() + eager_service::kKeepAlive.deadline));
  }
  return InvalidArgument("Client for target ", name.ToString(), " not found");
}

std::string RemoteDeviceOf(const Tensor& t) {
  if (!RemotePlace::Any()) return "";
  if (const RemoteName* name = RemoteNameOf(t)) return name->place()->device();
  const HandlePtr handle = FindHandle(t);
  return handle ? handle->device() : "";
}

}  // namespace headrace::distributed
