#include "c/eager/cluster.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_join.h"
#include "c/eager/context.h"
#include "c/status.h"
#include "distributed/master/tasks.h"
#include "op/processor.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace headrace::capi {
namespace {

using distributed::Clock;

// Longer times than that are as good as for ever.
constexpr int64_t kLongestMs = int64_t{366} * 24 * 3600 * 1000;

distributed::RemoteOptions OptionsOf(const ClusterWish& wish) {
  distributed::RemoteOptions options;
  options.def = wish.def;
  options.keep_alive_secs = wish.keep_alive_secs;
  options.deadline =
      Clock::now() +
      (wish.timeout_ms > 0
           ? std::chrono::milliseconds(std::min(wish.timeout_ms, kLongestMs))
           : std::chrono::milliseconds(distributed::kRendezvousTime));
  options.clear_existing_contexts = wish.clear_existing_contexts;
  options.library = wish.library;
  options.resources = wish.resources;
  return options;
}

// Whether another try may find them.
bool MayComeLater(const Status& s) {
  return absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s);
}

const std::string* OwnAddress(const tensorflow::ServerDef& def) {
  for (const auto& job : def.cluster().job()) {
    if (job.name() != def.job_name()) continue;
    const auto task = job.tasks().find(def.task_index());
    if (task != job.tasks().end()) return &task->second;
  }
  return nullptr;
}

// The bytes of a ServerDef.
Status ReadServerDef(const void* proto, size_t length,
                     tensorflow::ServerDef* def) {
  if (length > INT_MAX || (proto == nullptr && length > 0) ||
      !def->ParseFromArray(proto, static_cast<int>(length))) {
    return InvalidArgument("Invalid tensorflow.ServerDef protocol buffer");
  }
  return OkStatus();
}

Status SetCluster(TFE_Context* context, const void* proto, size_t length,
                  ClusterWish wish) {
  HR_RETURN_IF_ERROR(NotNull(context, "ctx"));
  HR_RETURN_IF_ERROR(ReadServerDef(proto, length, &wish.def));
  MutexLock setting(context->setting_cluster);
  std::shared_ptr<EagerCluster> before = context->cluster();
  if (before && before->ListensAt(wish.def)) {
    // Its port is needed.
    context->SetCluster(nullptr);
    before->Close();
    before = nullptr;
  }
  const auto& functions = context->ops.functions();
  wish.library = {functions, functions->library().get()};
  wish.resources = &context->resources;
  HR_ASSIGN_OR_RETURN(
      auto made,
      EagerCluster::Make(std::move(wish), context->config.processors));
  context->SetCluster(std::move(made));
  if (before) before->Close();
  return OkStatus();
}

Status UpdateCluster(TFE_Context* context, const void* proto, size_t length,
                     ClusterWish wish) {
  HR_RETURN_IF_ERROR(NotNull(context, "ctx"));
  HR_RETURN_IF_ERROR(ReadServerDef(proto, length, &wish.def));
  MutexLock setting(context->setting_cluster);
  const auto cluster = context->cluster();
  if (!cluster) return NoCluster();
  return cluster->Update(wish);
}

}  // namespace

Status NoCluster() {
  return FailedPrecondition(
      "The context has no cluster: TFE_ContextSetServerDef gives it one");
}

StatusOr<std::shared_ptr<EagerCluster>> EagerCluster::Make(ClusterWish wish,
                                                           int processors) {
  std::shared_ptr<EagerCluster> made(new EagerCluster);
  made->asked_ = wish.def;
  if (processors != 1) {
    auto& config = *wish.def.mutable_default_session_config();
    (*config.mutable_device_count())["CPU"] = processors;
  }
  HR_ASSIGN_OR_RETURN(made->server_, distributed::NewServer(wish.def));
  made->server_->Start();
  wish.def = made->server_->def();  // with the port that it listens at
  made->own_ = DeviceName::OfTask(wish.def.job_name(), wish.def.task_index());
  for (int i = 0; i < processors; ++i) {
    DeviceName name = made->own_;
    name.type = "CPU";
    name.id = i;
    made->processors_.push_back(std::make_shared<EagerDevice>(
        EagerDevice{name.ToString(), ProcessorName(i)}));
  }
  for (int tries = 0;; ++tries) {
    distributed::RemoteOptions options = OptionsOf(wish);
    options.worker = made->server_->worker();
    auto met = distributed::ConnectEagerly(options);
    if (met.ok()) {
      made->remote_ = *std::move(met);
      return made;
    }
    if (tries >= wish.retries || !MayComeLater(met.status())) {
      return met.status();
    }
  }
}

Status EagerCluster::Update(const ClusterWish& wish) {
  ClusterWish now = wish;
  // This task stays where it listens, which the def may have as port 0.
  if (const std::string* own = OwnAddress(server_->def())) {
    for (auto& job : *now.def.mutable_cluster()->mutable_job()) {
      if (job.name() != own_.job) continue;
      const auto task = job.mutable_tasks()->find(*own_.task);
      if (task != job.mutable_tasks()->end()) task->second = *own;
    }
  }
  return remote_->Update(OptionsOf(now));
}

void EagerCluster::Close() {
  if (remote_) remote_->Close();
  if (server_) server_->Stop();
}

bool EagerCluster::ListensAt(const tensorflow::ServerDef& def) const {
  const std::string* other = OwnAddress(def);
  const std::string* asked = OwnAddress(asked_);
  const std::string* own = OwnAddress(server_->def());
  return other && ((asked && *other == *asked) || (own && *other == *own));
}

StatusOr<EagerPlace> EagerCluster::PlaceOf(const std::string& device) const {
  DeviceName name;
  if (!DeviceName::Parse(device, &name)) {
    return InvalidArgument("Malformed device specification '", device, "'");
  }
  // A job that is named without a task is its first one.
  name = name.OrElse({own_.job, 0, name.job ? 0 : *own_.task, "CPU", 0});
  if (name.SameTask(own_)) {
    if (name.type != "CPU" ||
        *name.id >= static_cast<int>(processors_.size())) {
      return InvalidArgument(
          "Could not satisfy device specification '", name.ToString(),
          "'. enable_soft_placement=0. Supported device types [CPU]. All "
          "available devices [",
          absl::StrJoin(DeviceNames(), ", "), "].");
    }
    return EagerPlace{nullptr, processors_[*name.id]};
  }
  HR_ASSIGN_OR_RETURN(auto place, remote_->PlaceOf(name.ToString()));
  auto there = std::make_shared<EagerDevice>(
      EagerDevice{place->device(), place->device()});
  return EagerPlace{std::move(place), std::move(there)};
}

std::vector<std::string> EagerCluster::DeviceNames() const {
  TF_DeviceList list;
  AddDevices(&list);
  std::vector<std::string> names;
  for (const auto& d : list.devices) names.push_back(d.name);
  return names;
}

void EagerCluster::AddDevices(TF_DeviceList* list) const {
  const auto add = [&](const auto& devices) {
    for (const tensorflow::DeviceAttributes& d : devices) {
      list->devices.push_back(
          {d.name(), d.device_type(), d.memory_limit(), d.incarnation()});
    }
  };
  add(server_->worker()->devices());
  add(remote_->devices());
}

}  // namespace headrace::capi

namespace capi = headrace::capi;

void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs,
                             const void* proto, size_t proto_len,
                             TF_Status* status) {
  TFE_ContextSetServerDefWithTimeout(ctx, keep_alive_secs, proto, proto_len, 0,
                                     status, false);
}

void TFE_ContextSetServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs,
                                        const void* proto, size_t proto_len,
                                        int64_t init_timeout_in_ms,
                                        TF_Status* status,
                                        bool clear_existing_contexts) {
  TFE_ContextSetServerDefWithTimeoutAndRetries(ctx, keep_alive_secs, proto,
                                               proto_len, init_timeout_in_ms, 0,
                                               status, clear_existing_contexts);
}

void TFE_ContextSetServerDefWithTimeoutAndRetries(
    TFE_Context* ctx, int keep_alive_secs, const void* proto, size_t proto_len,
    int64_t init_timeout_in_ms, int retries, TF_Status* status,
    bool clear_existing_contexts) {
  capi::Into(status, [&] {
    return capi::SetCluster(
        ctx, proto, proto_len,
        {.def = {},
         .keep_alive_secs = keep_alive_secs,
         .timeout_ms = init_timeout_in_ms,
         .retries = retries,
         .clear_existing_contexts = clear_existing_contexts});
  });
}

void TFE_ContextUpdateServerDef(TFE_Context* ctx, int keep_alive_secs,
                                const void* proto, size_t proto_len,
                                TF_Status* status) {
  TFE_ContextUpdateServerDefWithTimeout(ctx, keep_alive_secs, proto, proto_len,
                                        0, status);
}

void TFE_ContextUpdateServerDefWithTimeout(TFE_Context* ctx,
                                           int keep_alive_secs,
                                           const void* proto, size_t proto_len,
                                           int64_t init_timeout_in_ms,
                                           TF_Status* status) {
  capi::Into(status, [&] {
    return capi::UpdateCluster(ctx, proto, proto_len,
                               {.def = {},
                                .keep_alive_secs = keep_alive_secs,
                                .timeout_ms = init_timeout_in_ms});
  });
}

bool TFE_ContextCheckAlive(TFE_Context* ctx, const char* worker_name,
                           TF_Status* status) {
  return capi::Into(status, [&]() -> headrace::Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    HR_RETURN_IF_ERROR(capi::NotNull(worker_name, "worker_name"));
    const auto cluster = ctx->cluster();
    if (!cluster) return capi::NoCluster();
    return cluster->remote().CheckAlive(worker_name);
  });
}

// Ops are done when TFE_Execute returns.
void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status) {
  capi::Into(status, [&] { return capi::NotNull(ctx, "ctx"); });
}
