// TF_Server: a task of a cluster.
#include <climits>
#include <memory>
#include <utility>

#include "c/status.h"
#include "distributed/task/process.h"
#include "tensorflow/c/c_api.h"

// Thread-safe. The task is counted: who waits in TF_ServerJoin holds it, too.
struct TF_Server {
  const std::shared_ptr<headrace::distributed::Server> task;
  enum class State { kNew, kStarted, kStopped };
  headrace::Mutex mutex;
  State state ABSL_GUARDED_BY(mutex) = State::kNew;

  explicit TF_Server(std::shared_ptr<headrace::distributed::Server> made)
      : task(std::move(made)) {}
};

namespace headrace::capi {
namespace {

StatusOr<TF_Server*> NewServer(const void* proto, size_t length) {
  tensorflow::ServerDef def;
  if (length > INT_MAX || (proto == nullptr && length > 0) ||
      !def.ParseFromArray(proto, static_cast<int>(length))) {
    return InvalidArgument(
        "Could not parse provided bytes into a ServerDef protocol buffer");
  }
  HR_ASSIGN_OR_RETURN(std::shared_ptr<distributed::Server> made,
                      distributed::NewServer(def));
  return new TF_Server(std::move(made));
}

Status StartServer(TF_Server* server) {
  HR_RETURN_IF_ERROR(NotNull(server, "server"));
  MutexLock lock(server->mutex);
  if (server->state == TF_Server::State::kStopped) {
    return FailedPrecondition("Server has stopped.");
  }
  server->state = TF_Server::State::kStarted;
  server->task->Start();
  return OkStatus();
}

Status StopServer(TF_Server* server) {
  HR_RETURN_IF_ERROR(NotNull(server, "server"));
  {
    MutexLock lock(server->mutex);
    server->state = TF_Server::State::kStopped;
  }
  server->task->Stop();
  return OkStatus();
}

Status JoinServer(TF_Server* server) {
  HR_RETURN_IF_ERROR(NotNull(server, "server"));
  const auto task = server->task;
  {
    MutexLock lock(server->mutex);
    if (server->state == TF_Server::State::kNew) {
      // Nobody would be waited for; it cannot be started any more.
      server->state = TF_Server::State::kStopped;
      return OkStatus();
    }
  }
  return task->Join();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_Server* TF_NewServer(const void* proto, size_t proto_len,
                        TF_Status* status) {
  return capi::OrNull(status,
                      [&] { return capi::NewServer(proto, proto_len); });
}

void TF_ServerStart(TF_Server* server, TF_Status* status) {
  capi::Into(status, [&] { return capi::StartServer(server); });
}

void TF_ServerStop(TF_Server* server, TF_Status* status) {
  capi::Into(status, [&] { return capi::StopServer(server); });
}

void TF_ServerJoin(TF_Server* server, TF_Status* status) {
  capi::Into(status, [&] { return capi::JoinServer(server); });
}

const char* TF_ServerTarget(TF_Server* server) {
  return server ? server->task->target().c_str() : "";
}

void TF_DeleteServer(TF_Server* server) {
  capi::OrElse(0, [&] {
    if (server != nullptr) server->task->Stop();
    delete server;
    return 0;
  });
}
