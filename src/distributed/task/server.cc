#include "distributed/task/server.h"

#include "absl/strings/numbers.h"
#include "base/host_name.h"
#include "base/launcher.h"
#include "distributed/channels.h"
#include "distributed/eager/eager_service.h"
#include "distributed/introducing_channel.h"
#include "distributed/master/master_service.h"
#include "distributed/mpi/mpi_engine.h"
#include "distributed/nccl/nccl_engine.h"
#include "distributed/processors.h"
#include "distributed/worker/worker_service.h"

namespace headrace::distributed {
namespace {

// The masters of this process' servers, by target.
struct Known {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<Master>> masters ABSL_GUARDED_BY(mutex);
};
Known& TheKnown() {
  static Known* const known = new Known;
  return *known;
}

std::string* OwnAddress(tensorflow::ServerDef* def) {
  for (auto& job : *def->mutable_cluster()->mutable_job()) {
    if (job.name() != def->job_name()) continue;
    const auto task = job.mutable_tasks()->find(def->task_index());
    if (task != job.mutable_tasks()->end()) return &task->second;
  }
  return nullptr;
}

// "host:port"; without a port in the text, that of the ServerDef.
struct HostPort {
  std::string host;
  int port = 0;
};
StatusOr<HostPort> ParseAddress(const std::string& address, int port) {
  HostPort out;
  const size_t colon = address.rfind(':');
  out.host = address.substr(0, colon);
  out.port = port;
  if (colon == std::string::npos ? port == 0 : !ParsePort(address, &out.port)) {
    return InvalidArgument("Could not parse port for local server from \"",
                           address, "\".");
  }
  return out;
}

Status CheckTask(const tensorflow::ServerDef& def) {
  for (const auto& job : def.cluster().job()) {
    if (job.name() != def.job_name()) continue;
    if (job.tasks().contains(def.task_index())) return OkStatus();
    return Internal("Task ", def.task_index(), " was not defined in job \"",
                    def.job_name(), "\"");
  }
  return Internal("Job \"", def.job_name(), "\" was not defined in cluster");
}

std::set<TaskId> TasksOf(const tensorflow::ClusterDef& cluster) {
  std::set<TaskId> tasks;
  for (const auto& job : cluster.job()) {
    for (const auto& [index, address] : job.tasks()) {
      tasks.insert({job.name(), index});
    }
  }
  return tasks;
}

StatusOr<std::shared_ptr<CollectiveEngine>> EngineByMpi(const Worker& worker) {
  MpiCollectivesOptions options;
  options.task = worker.task();
  options.own = worker.collectives();
  const auto world = MpiWorld::OfProcess(kRendezvousTime);
  if (!world.ok()) {
    return Status(
        world.status().code(),
        absl::StrCat("collectives by MPI, at ", worker.task().ToString(), ": ",
                     world.status().message()));
  }
  return MpiCollectives::Make(*world, std::move(options));
}

Status UseCarrier(Carrier carrier, Worker& worker) {
  // Members of a lone task meet as those of a program do.
  if (worker.cluster()->tasks().size() < 2) return OkStatus();
  NcclCollectivesOptions options;
  options.own = worker.collectives();
  options.otherwise = options.own;
  if (carrier == Carrier::kMpi) {
    HR_ASSIGN_OR_RETURN(options.otherwise, EngineByMpi(worker));
  }
  options.host = HostName();
  worker.UseEngine(std::make_shared<NcclCollectives>(std::move(options)));
  return OkStatus();
}

// What ends the collectives of a task.
std::function<void(const Status&)> Losing(const Worker& worker) {
  return [weak = std::weak_ptr(worker.collectives())](const Status& why) {
    if (const auto collectives = weak.lock()) collectives->LoseRing(why);
  };
}

}  // namespace

// What calls find: nothing until the server is started.
struct Server::Services {
  Mutex mutex;
  std::map<std::string, Method> methods ABSL_GUARDED_BY(mutex);
  std::map<std::string, Conversation> conversations ABSL_GUARDED_BY(mutex);

  Method Find(const std::string& path) {
    MutexLock lock(mutex);
    const auto it = methods.find(path);
    return it == methods.end() ? Method() : it->second;
  }
  Conversation FindConversation(const std::string& path) {
    MutexLock lock(mutex);
    const auto it = conversations.find(path);
    return it == conversations.end() ? Conversation() : it->second;
  }
};

Dial Dialling(Transport& transport, const ConnectOptions& connect,
              const std::string& task, bool allows_tensorflow) {
  const auto channels = std::make_shared<Channels>(transport, connect);
  return [channels, own = OwnVersion(task),
          allows_tensorflow](const std::string& address) {
    return IntroducingChannel(channels->To(address), own, address,
                              allows_tensorflow);
  };
}

StatusOr<std::unique_ptr<Server>> Server::Make(tensorflow::ServerDef def,
                                               const ServerOptions& options) {
  std::unique_ptr<Server> made(new Server);
  HR_RETURN_IF_ERROR(CheckTask(def));
  HR_ASSIGN_OR_RETURN(const int processors,
                      ProcessorsOf(def.default_session_config()));
  HR_ASSIGN_OR_RETURN(
      made->coordination_config_,
      ReadCoordinationConfig(
          def.default_session_config().experimental().coordination_config(),
          TasksOf(def.cluster())));
  std::string* const own = OwnAddress(&def);
  HR_ASSIGN_OR_RETURN(HostPort at, ParseAddress(*own, def.port()));
  made->services_ = std::make_shared<Services>();
  ListenOptions listen;
  listen.address = absl::StrCat(at.host, ":", at.port);
  listen.tls = options.tls;
  auto paths = MasterMethods(nullptr);
  paths.merge(WorkerMethods(nullptr));
  paths.merge(EagerMethods(nullptr));
  paths.merge(CoordinationService::Methods(nullptr));
  const PeerVersion own_version = OwnVersion(
      DeviceName::OfTask(def.job_name(), def.task_index()).ToString());
  listen.authorize = [own_version, allows = options.allows_tensorflow](
                         const std::string& path, const Metadata& metadata) {
    return AnswerOf(Introduces(path)
                        ? CheckPeer(own_version, metadata, "a caller", allows)
                        : OkStatus());
  };
  for (auto& [path, unused] : paths) {
    listen.methods[path] = [services = made->services_, path = path,
                            own_version](std::shared_ptr<ServerCall> call,
                                         Bytes request) {
      if (Introduces(path)) {
        call = IntroducingCall(std::move(call), own_version);
      }
      const Method found = services->Find(path);
      if (found) return found(std::move(call), std::move(request));
      call->Finish(AnswerOf(Unavailable("the server is not started")));
    };
  }
  for (auto& [path, unused] : EagerConversations(nullptr)) {
    listen.conversations[path] = [services = made->services_, path = path](
                                     const std::shared_ptr<ServerCall>& call,
                                     std::optional<Bytes> message) {
      const Conversation found = services->FindConversation(path);
      if (found) return found(call, std::move(message));
      call->Finish(AnswerOf(Unavailable("the server is not started")));
    };
  }
  std::string error;
  made->listener_ = options.transport->Listen(std::move(listen), &error);
  if (!made->listener_) {
    return Unknown("Could not start gRPC server: ", error);
  }
  at.port = made->listener_->port();
  *own = absl::StrCat(at.host, ":", at.port);
  made->target_ = absl::StrCat("grpc://", *own);
  const Dial dial = Dialling(*options.transport, options.connect,
                             own_version.task, options.allows_tensorflow);
  HR_ASSIGN_OR_RETURN(auto cluster, Cluster::Make(def, dial));
  made->worker_ = std::make_shared<Worker>(std::move(cluster), processors,
                                           options.allows_tensorflow);
  HR_RETURN_IF_ERROR(UseCarrier(options.carrier, *made->worker_));
  made->master_ = std::make_shared<Master>(made->worker_);
  made->eager_ = std::make_shared<EagerContexts>(made->worker_);
  const CoordinationConfig& config = made->coordination_config_;
  CoordinationOptions coordination;
  coordination.tasks = config.tasks;
  coordination.recoverable = config.recoverable;
  coordination.may_come_again = config.may_come_again;
  if (config.silence) coordination.silence = *config.silence;
  // (The service itself is there, for what the leader tells the task.)
  coordination.leads =
      !config.leader || config.leader->SameTask(made->worker_->task());
  coordination.incarnation = made->worker_->incarnation();
  coordination.lost = Losing(*made->worker_);
  coordination.channel_of = [cluster = made->worker_->cluster(),
                             own = made->worker_->task()](
                                const TaskId& id) -> std::shared_ptr<Channel> {
    const DeviceName task = DeviceName::OfTask(id.first, id.second);
    return task.SameTask(own) ? nullptr : cluster->ChannelOf(task);
  };
  made->coordination_ =
      std::make_shared<CoordinationService>(std::move(coordination));
  return made;
}

Status Server::Coordinate(const std::set<TaskId>& tasks) {
  std::shared_ptr<CoordinationAgent> agent;
  {
    MutexLock lock(mutex_);
    if (agent_ || stopped_) return OkStatus();
    AgentOptions options;
    options.task = worker_->task();
    options.leader = Coordinator();
    options.incarnation = worker_->incarnation();
    options.devices = worker_->devices();
    options.channel = worker_->cluster()->ChannelOf(options.leader);
    options.lost = Losing(*worker_);
    if (const auto silence = coordination_config_.silence) {
      options.silence = *silence;
      // Twice in that time, or one that comes late would be a death.
      options.beat = std::min(options.beat, *silence / 2);
    }
    if (const auto patience = coordination_config_.patience) {
      options.patience = *patience;
    }
    agent = agent_ = std::make_shared<CoordinationAgent>(std::move(options));
  }
  if (Coordinator().SameTask(worker_->task())) {
    coordination_->Expect(tasks);
  }
  const Status s = agent->Start();
  if (s.ok()) return s;
  agent->Stop();
  MutexLock lock(mutex_);
  agent_ = nullptr;  // it may be tried again
  return s;
}

DeviceName Server::Coordinator() const {
  return coordination_config_.leader.value_or(worker_->leader());
}

void Server::Start() {
  {
    MutexLock lock(services_->mutex);
    services_->methods = WorkerMethods(worker_);
    services_->methods.merge(MasterMethods(master_));
    services_->methods.merge(EagerMethods(eager_));
    services_->methods.merge(CoordinationService::Methods(coordination_));
    services_->conversations = EagerConversations(eager_);
  }
  MutexLock lock(TheKnown().mutex);
  TheKnown().masters[target_] = master_;
}

Server::~Server() { Stop(); }

Status Server::Join() {
  TellLauncherOfServing();
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!stopped_) changed_.WaitFor(mutex_, std::chrono::milliseconds(50));
      if (stopped_) return OkStatus();
    }
    HR_RETURN_IF_ERROR(CheckStop());
  }
}

void Server::Stop(std::chrono::milliseconds grace) {
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (!master_) return;  // it never began
  {
    MutexLock lock(TheKnown().mutex);
    const auto it = TheKnown().masters.find(target_);
    if (it != TheKnown().masters.end() && it->second.lock() == master_) {
      TheKnown().masters.erase(it);
    }
  }
  std::shared_ptr<CoordinationAgent> agent;
  {
    MutexLock lock(mutex_);
    agent = agent_;
  }
  const Status failure = worker_->collectives()->RingFailure();
  eager_->Stop();
  master_->Stop();
  worker_->Stop();
  if (agent) agent->Stop(failure);
  coordination_->Stop(Unavailable("the server is stopped"));
  listener_->Stop(Clock::now() + grace);
  MutexLock lock(services_->mutex);
  // Which hold master, worker and contexts.
  services_->methods.clear();
  services_->conversations.clear();
}

std::shared_ptr<Master> Server::FindMaster(const std::string& target) {
  MutexLock lock(TheKnown().mutex);
  const auto it = TheKnown().masters.find(target);
  return it == TheKnown().masters.end() ? nullptr : it->second.lock();
}

}  // namespace headrace::distributed
