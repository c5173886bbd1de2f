#include "distributed/task/client.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "distributed/master/master_service.h"
#include "distributed/messages.h"
#include "distributed/task/server.h"
#include "graph/export.h"

namespace headrace::distributed {
namespace {

// What a close may take: the master may be gone.
constexpr std::chrono::seconds kCloseTime{2};
// What the answer of a step that has run out of time may take.
constexpr std::chrono::milliseconds kAnswerTime{100};

class RemoteStub : public MasterStub {
 public:
  explicit RemoteStub(std::shared_ptr<Channel> channel)
      : channel_(std::move(channel)) {}

  Status Call(const char* method, const google::protobuf::MessageLite& request,
              google::protobuf::MessageLite* response,
              Clock::time_point deadline) override {
    CallOptions options;
    options.deadline = deadline;
    // A server that is not up yet is waited for, as long as that is bounded.
    options.wait_for_ready = deadline != Clock::time_point::max();
    return CallAndWait(*channel_, absl::StrCat(kMasterService, method), request,
                       response, options);
  }

  Status Run(const std::string& session, const std::string& partial_run,
             StepRequest r, std::vector<Tensor>* fetched,
             tensorflow::RunMetadata* metadata) override {
    HR_ASSIGN_OR_RETURN(tensorflow::RunStepRequest request,
                        RunStepMessage(session, partial_run, r));
    request.set_request_id(NewRequestId());
    // Servers of TensorFlow leave it to the caller; ours say what was waited
    // for, when the time has come.
    CallOptions options;
    if (const int64_t ms = r.options.timeout_in_ms(); ms > 0) {
      options.deadline =
          Clock::now() + std::chrono::milliseconds(ms) + kAnswerTime;
    }
    tensorflow::RunStepResponse response;
    HR_RETURN_IF_ERROR(CallAndWait(*channel_,
                                   absl::StrCat(kMasterService, "RunStep"),
                                   request, &response, options));
    HR_RETURN_IF_ERROR(ReadStep(response, r.fetches, fetched));
    if (metadata) *metadata = std::move(*response.mutable_metadata());
    return OkStatus();
  }

  StatusOr<std::unique_ptr<StepsTogether>> RunTogether(
      const std::string& session, const std::vector<StepRequest>& steps,
      std::chrono::microseconds within) override {
    return StepsTogether::Start(channel_, session, steps, within);
  }

 private:
  const std::shared_ptr<Channel> channel_;
};

// The service's methods, without their bytes where that counts.
class LocalStub : public MasterStub {
 public:
  explicit LocalStub(std::shared_ptr<Master> master)
      : master_(std::move(master)) {}

  Status Call(const char* method, const google::protobuf::MessageLite& request,
              google::protobuf::MessageLite* response,
              Clock::time_point deadline) override {
    return CallMaster(master_, method, request, deadline, response);
  }

  Status Run(const std::string& session, const std::string& partial_run,
             StepRequest r, std::vector<Tensor>* fetched,
             tensorflow::RunMetadata* metadata) override {
    HR_ASSIGN_OR_RETURN(const auto found, master_->Find(session));
    if (!partial_run.empty()) {
      return found->RunPart(partial_run, std::move(r), fetched);
    }
    return found->Run(std::move(r), fetched, metadata);
  }

  StatusOr<std::unique_ptr<StepsTogether>> RunTogether(
      const std::string&, const std::vector<StepRequest>&,
      std::chrono::microseconds) override {
    return Unimplemented(
        "steps in one call, within a process where calls cost nothing");
  }

 private:
  const std::shared_ptr<Master> master_;
};

}  // namespace

StatusOr<std::unique_ptr<MasterStub>> MasterStub::Of(const std::string& target,
                                                     const Dial& dial) {
  StringView address = target;
  if (!absl::ConsumePrefix(&address, "grpc://")) {
    return InvalidArgument("\"", target, "\" is no target of a cluster");
  }
  HR_RETURN_IF_ERROR(CheckAddress(address));
  if (auto master = Server::FindMaster(target)) {
    return std::make_unique<LocalStub>(std::move(master));
  }
  return std::make_unique<RemoteStub>(dial(std::string(address)));
}

Clock::time_point OperationDeadline(const tensorflow::ConfigProto& config) {
  const int64_t ms = config.operation_timeout_in_ms();
  return Clock::now() + (ms > 0 ? std::chrono::milliseconds(ms)
                                : std::chrono::milliseconds(kRendezvousTime));
}

// What the graph has that the master does not.
StatusOr<tensorflow::GraphDef> ClientSession::Grown(int end) {
  tensorflow::GraphDef def;
  ExportOptions options;
  options.effect_order = true;
  bool calls = false;
  for (int i = sent_; i < end; ++i) {
    const Node& n = *graph_->node(i);
    HR_RETURN_IF_ERROR(ExportNode(n, options, def.add_node()));
    for (const auto& [name, value] : n.op().attrs()) {
      calls = calls || std::holds_alternative<FuncRef>(value) ||
              std::holds_alternative<std::vector<FuncRef>>(value);
    }
  }
  ExportVersions(graph_->versions(), def.mutable_versions());
  if (calls) {
    tensorflow::GraphDef all;
    HR_RETURN_IF_ERROR(ExportGraph(*graph_, options, &all));
    *def.mutable_library() = std::move(*all.mutable_library());
  }
  return def;
}

Status ClientSession::ExtendLocked() {
  if (closed_) return Cancelled("Session has been closed.");
  int nodes = 0;
  tensorflow::GraphDef grown;
  {
    MutexLock lock(graph_mutex_);
    nodes = graph_->num_nodes();
    if (!handle_.empty() && nodes == sent_) return OkStatus();
    HR_ASSIGN_OR_RETURN(grown, Grown(nodes));
  }
  if (handle_.empty()) {
    tensorflow::CreateSessionRequest request;
    *request.mutable_graph_def() = std::move(grown);
    *request.mutable_config() = config_;
    request.set_target(target_);
    tensorflow::CreateSessionResponse response;
    HR_RETURN_IF_ERROR(master_->Call("CreateSession", request, &response,
                                     OperationDeadline(config_)));
    handle_ = response.session_handle();
    version_ = response.graph_version();
  } else {
    tensorflow::ExtendSessionRequest request;
    request.set_session_handle(handle_);
    *request.mutable_graph_def() = std::move(grown);
    request.set_current_graph_version(version_);
    tensorflow::ExtendSessionResponse response;
    HR_RETURN_IF_ERROR(master_->Call("ExtendSession", request, &response,
                                     OperationDeadline(config_)));
    version_ = response.new_graph_version();
  }
  sent_ = nodes;
  return OkStatus();
}

Status ClientSession::Extend() {
  MutexLock lock(mutex_);
  return ExtendLocked();
}

StatusOr<std::string> ClientSession::Handle() {
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(ExtendLocked());
  return handle_;
}

Status ClientSession::Run(StepRequest request, std::vector<Tensor>* fetched,
                          tensorflow::RunMetadata* metadata) {
  HR_ASSIGN_OR_RETURN(const std::string handle, Handle());
  if (request.options.timeout_in_ms() <= 0) {
    request.options.set_timeout_in_ms(config_.operation_timeout_in_ms());
  }
  return master_->Run(handle, "", std::move(request), fetched, metadata);
}

StatusOr<std::unique_ptr<StepsTogether>> ClientSession::RunTogether(
    std::vector<StepRequest> steps, std::chrono::microseconds within) {
  HR_ASSIGN_OR_RETURN(const std::string handle, Handle());
  for (StepRequest& step : steps) {
    if (step.options.timeout_in_ms() <= 0) {
      step.options.set_timeout_in_ms(config_.operation_timeout_in_ms());
    }
  }
  return master_->RunTogether(handle, steps, within);
}

StatusOr<std::string> ClientSession::SetUpPartialRun(
    const tensorflow::PartialRunSetupRequest& wanted) {
  tensorflow::PartialRunSetupRequest request = wanted;
  HR_ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
  request.set_request_id(NewRequestId());
  tensorflow::PartialRunSetupResponse response;
  HR_RETURN_IF_ERROR(master_->Call("PartialRunSetup", request, &response,
                                   OperationDeadline(config_)));
  return response.partial_run_handle();
}

Status ClientSession::RunPart(const std::string& run, StepRequest request,
                              std::vector<Tensor>* fetched) {
  HR_ASSIGN_OR_RETURN(const std::string handle, Handle());
  return master_->Run(handle, run, std::move(request), fetched, nullptr);
}

StatusOr<tensorflow::ListDevicesResponse> ClientSession::ListDevices() {
  tensorflow::ListDevicesRequest request;
  HR_ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
  tensorflow::ListDevicesResponse response;
  HR_RETURN_IF_ERROR(master_->Call("ListDevices", request, &response,
                                   OperationDeadline(config_)));
  return response;
}

int ClientSession::sent() {
  MutexLock lock(mutex_);
  return sent_;
}

Status ClientSession::Close() {
  std::string handle;
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return OkStatus();
    handle = std::exchange(handle_, "");
  }
  if (handle.empty()) return OkStatus();
  tensorflow::CloseSessionRequest request;
  request.set_session_handle(handle);
  tensorflow::CloseSessionResponse response;
  return master_->Call("CloseSession", request, &response,
                       Clock::now() + kCloseTime);
}

}  // namespace headrace::distributed
