#include "cc/servers.h"

#include <utility>

#include "cc/compose.h"
#include "cc/server_state.h"
#include "op/registry.h"
#include "op/resolved_op.h"

namespace headrace::tf::internal {
namespace {

using headrace::distributed::Coordinated;

thread_local std::shared_ptr<Servers> current_servers;
thread_local const Variable* beside = nullptr;

constexpr char kChief[] = "chief";
// At which this process listens where the cluster does not have it.
constexpr char kAnyPort[] = "localhost:0";

std::shared_ptr<Coordinated> Connected(
    const distribute::TaskConfig& task,
    const distribute::ParameterServerOptions& options) {
  const distribute::ClusterSpec& cluster = task.cluster;
  for (const char* job : {"ps", "worker"}) {
    if (!cluster.HasJob(job) || cluster.tasks(job).empty()) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("a cluster of parameter servers has tasks \"ps\" and "
                         "\"worker\"; this one has no \"",
                         job, "\""));
    }
    if (task.job == job) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("this process is ", task.job, ":", task.index,
                         " of the cluster, which is to make a Server and join: "
                         "the strategy is the coordinator's"));
    }
  }
  if (cluster.HasJob(kChief) && cluster.tasks(kChief).size() > 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("a cluster of parameter servers has one chief, and not ",
                       cluster.tasks(kChief).size()));
  }
  if (!(options.timeout_seconds >= 0)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("timeout_seconds is not negative, and is ",
                       options.timeout_seconds));
  }
  const bool known = cluster.HasJob(task.job);
  const std::string job = known ? task.job : kChief;
  const int index = known ? task.index : 0;
  tensorflow::ServerDef def = DefOf(cluster, job, index);
  if (!cluster.HasJob(job)) {
    auto* own = def.mutable_cluster()->add_job();
    own->set_name(job);
    (*own->mutable_tasks())[index] = kAnyPort;
  }
  // Longer than anybody waits.
  constexpr double kMostSeconds = 1e6;
  const std::chrono::duration<double> time(
      std::min(options.timeout_seconds, kMostSeconds));
  using headrace::distributed::Clock;
  return Check(Coordinated::Connect(
      def, Clock::now() + std::chrono::duration_cast<Clock::duration>(time)));
}

}  // namespace

tensorflow::ServerDef DefOf(const distribute::ClusterSpec& cluster,
                            const std::string& job, int index) {
  tensorflow::ServerDef def;
  for (const std::string& name : cluster.jobs()) {
    auto* made = def.mutable_cluster()->add_job();
    made->set_name(name);
    for (const auto& [number, address] : cluster.tasks(name)) {
      (*made->mutable_tasks())[number] = address;
    }
  }
  def.set_protocol("grpc");
  def.set_job_name(job);
  def.set_task_index(index);
  return def;
}

Servers::Servers(const distribute::TaskConfig& task,
                 const distribute::ParameterServerOptions& options)
    : options_(options), tasks_(Connected(task, options)) {}

std::shared_ptr<RemotePlace> Servers::Next() {
  return tasks_->servers()[turn_++ % tasks_->servers().size()];
}

ServersScope::ServersScope(std::shared_ptr<Servers> servers)
    : outer_(std::exchange(current_servers, std::move(servers))) {}
ServersScope::~ServersScope() { current_servers = std::move(outer_); }

BesideScope::BesideScope(const Variable& variable)
    : outer_(std::exchange(beside, &variable)) {}
BesideScope::~BesideScope() { beside = outer_; }

std::shared_ptr<RemotePlace> PlaceOfVariable() {
  if (!RemotePlace::Any()) return nullptr;
  if (beside != nullptr) {
    const Value& handle = Access::ValueOf(beside->handle());
    if (handle.is_symbolic()) return nullptr;
    const RemoteName* name = RemoteNameOf(handle.tensor());
    return name == nullptr ? nullptr : name->place();
  }
  return current_servers ? current_servers->Next() : nullptr;
}

std::vector<headrace::Tensor> RunThere(
    const std::shared_ptr<RemotePlace>& place, const char* op,
    const std::vector<headrace::Tensor>& inputs, const AttrMap& attrs) {
  std::vector<headrace::DType> types;
  std::vector<const headrace::Tensor*> pointers;
  for (const headrace::Tensor& t : inputs) {
    types.push_back(t.dtype());
    pointers.push_back(&t);
  }
  const OpDef* def = Check(LookUpOp(op));
  const ResolvedOpPtr resolved = Check(ResolveOp(*def, types, attrs));
  std::vector<headrace::Tensor> outputs(resolved->num_outputs());
  Check(place->Run(*resolved, pointers, absl::MakeSpan(outputs)));
  return outputs;
}

}  // namespace headrace::tf::internal
