#include "c/cluster_session.h"

#include <utility>

#include "c/buffer.h"
#include "c/status.h"
#include "distributed/task/process.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace headrace::capi {
namespace {

std::string NameOf(const Edge& e) {
  return absl::StrCat(e.node->name(), ":", e.index);
}

distributed::StepRequest Named(const Request& r, std::vector<Tensor> feeds) {
  distributed::StepRequest step;
  for (size_t i = 0; i < r.feeds.size(); ++i) {
    step.feeds.emplace_back(NameOf(r.feeds[i]), std::move(feeds[i]));
  }
  for (const Edge& e : r.fetches) step.fetches.push_back(NameOf(e));
  for (const Node* n : r.targets) step.targets.push_back(n->name());
  return step;
}

}  // namespace

ClusterSession::ClusterSession(
    TF_Graph* g, std::unique_ptr<distributed::ClientSession> client)
    : graph_(g), client_(std::move(client)) {}

ClusterSession::~ClusterSession() = default;

StatusOr<std::unique_ptr<ClusterSession>> ClusterSession::Make(
    TF_Graph* g, const std::string& target, const std::string& config) {
  tensorflow::ConfigProto read;
  HR_RETURN_IF_ERROR(
      ReadProto(config.data(), config.size(), "ConfigProto", &read));
  HR_ASSIGN_OR_RETURN(auto stub, distributed::StubOf(target));
  return std::unique_ptr<ClusterSession>(new ClusterSession(
      g, std::make_unique<distributed::ClientSession>(
             std::move(stub), g->graph, std::move(read), target, &g->mutex)));
}

Status ClusterSession::CheckUnchanged() {
  const int sent = client_->sent();
  MutexLock lock(graph_->mutex);
  for (; seen_ < graph_->changed.size(); ++seen_) {
    const Node& node = *graph_->changed[seen_];
    if (node.id() >= sent) continue;
    return FailedPrecondition(
        "Operation '", node.name(),
        "' was changed after it was sent to the session's master, which has it "
        "as it was: make a new session");
  }
  return OkStatus();
}

Status ClusterSession::Extend() {
  HR_RETURN_IF_ERROR(CheckUnchanged());
  return client_->Extend();
}

Status ClusterSession::Run(const Request& request,
                           const tensorflow::RunOptions& options,
                           std::vector<Tensor> feeds,
                           std::vector<Tensor>* fetched,
                           tensorflow::RunMetadata* metadata) {
  HR_RETURN_IF_ERROR(CheckUnchanged());
  distributed::StepRequest step = Named(request, std::move(feeds));
  step.options = options;
  return client_->Run(std::move(step), fetched, metadata);
}

StatusOr<std::string> ClusterSession::SetUpPartialRun(const Request& plan) {
  HR_RETURN_IF_ERROR(CheckUnchanged());
  tensorflow::PartialRunSetupRequest setup;
  for (const Edge& e : plan.feeds) setup.add_feed(NameOf(e));
  for (const Edge& e : plan.fetches) setup.add_fetch(NameOf(e));
  for (const Node* n : plan.targets) setup.add_target(n->name());
  return client_->SetUpPartialRun(setup);
}

Status ClusterSession::RunPart(const std::string& handle, const Request& step,
                               std::vector<Tensor> feeds,
                               std::vector<Tensor>* fetched) {
  return client_->RunPart(handle, Named(step, std::move(feeds)), fetched);
}

StatusOr<TF_DeviceList*> ClusterSession::ListDevices() {
  HR_RETURN_IF_ERROR(CheckUnchanged());
  HR_ASSIGN_OR_RETURN(const auto said, client_->ListDevices());
  auto list = std::make_unique<TF_DeviceList>();
  const auto add = [&](const auto& devices) {
    for (const auto& d : devices) {
      list->devices.push_back({d.name(), d.device_type(), d.memory_limit(),
                               static_cast<uint64_t>(d.incarnation())});
    }
  };
  add(said.local_device());
  add(said.remote_device());
  return list.release();
}

Status ClusterSession::Close() { return client_->Close(); }

}  // namespace headrace::capi
