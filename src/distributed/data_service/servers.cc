#include "distributed/data_service/servers.h"

#include "absl/strings/str_replace.h"
#include "base/job_threads.h"
#include "base/launcher.h"
#include "distributed/data_service/methods.h"
#include "distributed/introducing_channel.h"
#include "distributed/service.h"

namespace headrace::distributed::data_service {
namespace {

constexpr char kTask[] = "the data service";

// Methods of a server that answers once it is started: who comes before is
// Unavailable, and tries again.
class Services {
 public:
  void Set(std::map<std::string, Method> methods) {
    MutexLock lock(mutex_);
    methods_.swap(methods);
  }
  Method Find(const std::string& path) {
    MutexLock lock(mutex_);
    const auto at = methods_.find(path);
    return at == methods_.end() ? Method() : at->second;
  }

 private:
  Mutex mutex_;
  std::map<std::string, Method> methods_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<std::unique_ptr<Listener>> ListenAt(
    Transport& transport, const std::string& address,
    const std::map<std::string, Method>& paths,
    const std::shared_ptr<Services>& services) {
  ListenOptions listen;
  listen.address = address;
  const PeerVersion own = OwnVersion(kTask);
  listen.authorize = [own](const std::string& path, const Metadata& metadata) {
    return AnswerOf(path == kRegisterDataset.path || path == kGetDataset.path ||
                            path == kOpenIteration.path ||
                            path == kWorkerHeartbeat.path
                        ? CheckPeer(own, metadata, "a caller", false)
                        : OkStatus());
  };
  for (const auto& [path, unused] : paths) {
    listen.methods[path] = [services, path = path, own](
                               std::shared_ptr<ServerCall> call,
                               Bytes request) {
      call = IntroducingCall(std::move(call), own);
      const Method found = services->Find(path);
      if (found) return found(std::move(call), std::move(request));
      call->Finish(AnswerOf(Unavailable("the server is not started")));
    };
  }
  std::string error;
  auto listener = transport.Listen(std::move(listen), &error);
  if (!listener) return Unknown("Could not start gRPC server: ", error);
  return listener;
}

class DispatchServerImpl : public DispatchServer {
 public:
  explicit DispatchServerImpl(DispatcherOptions options)
      : options_(std::move(options)) {}
  ~DispatchServerImpl() override { Stop(); }

  Status Listen(Transport& transport, const std::string& address) {
    HR_ASSIGN_OR_RETURN(
        listener_,
        ListenAt(transport, address, DispatcherMethods(nullptr), services_));
    port_ = listener_->port();
    return OkStatus();
  }
  Status Start() override {
    MutexLock lock(mutex_);
    if (dispatcher_ || stopped()) return OkStatus();
    HR_ASSIGN_OR_RETURN(dispatcher_, Dispatcher::Make(options_));
    services_->Set(DispatcherMethods(dispatcher_));
    sweep_ = std::make_shared<Sweeping>();
    return RunOnOwnThread([dispatcher = dispatcher_, sweep = sweep_] {
      while (true) {
        const auto pause = dispatcher->Sweep();
        MutexLock held(sweep->mutex);
        if (!sweep->over) sweep->changed.WaitFor(sweep->mutex, pause);
        if (sweep->over) return;
      }
    });
  }
  int port() const override { return port_; }
  std::shared_ptr<Dispatcher> dispatcher() override {
    MutexLock lock(mutex_);
    return dispatcher_;
  }

 private:
  struct Sweeping {
    Mutex mutex;
    CondVar changed;
    bool over ABSL_GUARDED_BY(mutex) = false;
  };

  void End() override {
    std::shared_ptr<Dispatcher> dispatcher;
    {
      MutexLock lock(mutex_);
      dispatcher.swap(dispatcher_);
      if (sweep_) {
        MutexLock held(sweep_->mutex);
        sweep_->over = true;
        sweep_->changed.NotifyAll();
      }
    }
    if (dispatcher) dispatcher->Stop();
    if (listener_) listener_->Stop(Clock::now());
    services_->Set({});
  }

  const DispatcherOptions options_;
  const std::shared_ptr<Services> services_ = std::make_shared<Services>();
  std::unique_ptr<Listener> listener_;
  int port_ = 0;
  Mutex mutex_;
  std::shared_ptr<Dispatcher> dispatcher_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Sweeping> sweep_ ABSL_GUARDED_BY(mutex_);
};

class WorkerServerImpl : public WorkerServer {
 public:
  ~WorkerServerImpl() override { Stop(); }

  Status Listen(Transport& transport, const std::string& address,
                WorkerOptions options) {
    HR_ASSIGN_OR_RETURN(
        listener_,
        ListenAt(transport, address, DataWorkerMethods(nullptr), services_));
    port_ = listener_->port();
    options.address =
        absl::StrReplaceAll(options.address, {{"%port%", absl::StrCat(port_)}});
    worker_ = std::make_shared<DataWorker>(std::move(options),
                                           ChannelsOver(transport));
    return OkStatus();
  }
  Status Start() override {
    {
      MutexLock lock(mutex_);
      if (started_ || stopped()) return OkStatus();
      started_ = true;
    }
    services_->Set(DataWorkerMethods(worker_));
    return worker_->Start();
  }
  int port() const override { return port_; }
  int num_tasks() override { return worker_->num_tasks(); }

 private:
  void End() override {
    if (worker_) worker_->Stop();
    if (listener_) listener_->Stop(Clock::now());
    services_->Set({});
  }

  const std::shared_ptr<Services> services_ = std::make_shared<Services>();
  std::unique_ptr<Listener> listener_;
  int port_ = 0;
  std::shared_ptr<DataWorker> worker_;
  Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

bool DataServer::stopped() {
  MutexLock lock(mutex_);
  return stopped_;
}

Status DataServer::Join() {
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

void DataServer::Stop() {
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    changed_.NotifyAll();
  }
  End();
}

StatusOr<std::unique_ptr<DispatchServer>> DispatchServer::Make(
    Transport& transport, const std::string& address,
    DispatcherOptions options) {
  auto made = std::make_unique<DispatchServerImpl>(std::move(options));
  HR_RETURN_IF_ERROR(made->Listen(transport, address));
  return std::unique_ptr<DispatchServer>(std::move(made));
}

StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Make(
    Transport& transport, const std::string& address, WorkerOptions options) {
  auto made = std::make_unique<WorkerServerImpl>();
  HR_RETURN_IF_ERROR(made->Listen(transport, address, std::move(options)));
  return std::unique_ptr<WorkerServer>(std::move(made));
}

std::shared_ptr<Channels> ChannelsOver(Transport& transport) {
  return std::make_shared<Channels>(transport, ConnectOptions(),
                                    OwnVersion(kTask));
}

// --- methods ---

std::map<std::string, Method> DispatcherMethods(std::shared_ptr<Dispatcher> d) {
  std::map<std::string, Method> m;
  m[kRegisterDataset.path] =
      AtOnce<RegisterDatasetRequest, RegisterDatasetResponse>(
          [d](const RegisterDatasetRequest& in, RegisterDatasetResponse* out) {
            return d->Register(in, out);
          });
  m[kGetDataset.path] = AtOnce<GetDatasetRequest, GetDatasetResponse>(
      [d](const GetDatasetRequest& in, GetDatasetResponse* out) {
        return d->Get(in, out);
      });
  m[kOpenIteration.path] =
      OnThread<OpenIterationRequest, OpenIterationResponse>(
          [d](CallScope&, OpenIterationRequest in, OpenIterationResponse* out) {
            return d->Open(std::move(in), out);
          });
  m[kClientHeartbeat.path] =
      OnThread<ClientHeartbeatRequest, ClientHeartbeatResponse>(
          [d](CallScope&, const ClientHeartbeatRequest& in,
              ClientHeartbeatResponse* out) { return d->Heartbeat(in, out); });
  m[kWorkerHeartbeat.path] =
      OnThread<WorkerHeartbeatRequest, WorkerHeartbeatResponse>(
          [d](CallScope&, const WorkerHeartbeatRequest& in,
              WorkerHeartbeatResponse* out) { return d->Heartbeat(in, out); });
  m[kReleaseClient.path] = AtOnce<ReleaseClientRequest, DataServiceDone>(
      [d](const ReleaseClientRequest& in, auto*) {
        return d->Release(in.client_id());
      });
  m[kTaskEnded.path] = AtOnce<TaskEndedRequest, DataServiceDone>(
      [d](const TaskEndedRequest& in, auto*) {
        return d->TaskEnded(in.task_id());
      });
  m[kGetSplit.path] = AtOnce<GetSplitRequest, GetSplitResponse>(
      [d](const GetSplitRequest& in, GetSplitResponse* out) {
        return d->Split(in, out);
      });
  m[kGetWorkers.path] = AtOnce<GetWorkersRequest, GetWorkersResponse>(
      [d](const GetWorkersRequest&, GetWorkersResponse* out) {
        for (auto& address : d->Workers()) out->add_addresses(address);
        return OkStatus();
      });
  return m;
}

std::map<std::string, Method> DataWorkerMethods(std::shared_ptr<DataWorker> w) {
  std::map<std::string, Method> m;
  // As OnThread, but that the answer is no message.
  m[kGetElements.path] = [w](std::shared_ptr<ServerCall> call,
                             const Bytes& bytes) {
    GetElementsRequest request;
    if (Status s = ReadMessage(bytes, &request); !s.ok()) {
      return call->Finish(AnswerOf(s));
    }
    auto token = std::make_shared<CancellationToken>();
    call->OnCancel([token] { token->Cancel(); });
    const Status begun = RunOnOwnThread([w, call, token, request] {
      const StopScope stop(token.get());
      Bytes body;
      const Status s =
          Guarded("a method", [&] { return w->Take(request, &body); });
      call->Finish(AnswerOf(s, std::move(body)));
    });
    if (!begun.ok()) call->Finish(AnswerOf(begun));
  };
  return m;
}

}  // namespace headrace::distributed::data_service
