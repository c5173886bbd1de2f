// A task of a cluster.
#include "cc/compose.h"
#include "cc/server_state.h"

namespace headrace::tf::distribute {

using internal::Check;

Server::Server(const ClusterSpec& cluster, const std::string& job, int index)
    : state_(std::make_shared<State>()) {
  state_->task = Check(
      headrace::distributed::NewServer(internal::DefOf(cluster, job, index)));
  state_->task->Start();
}

Server::Server(const TaskConfig& task)
    : Server(task.cluster, task.job, task.index) {}

const std::string& Server::target() const { return state_->task->target(); }

void Server::Join() const { Check(state_->task->Join()); }

void Server::Stop() const { state_->task->Stop(); }

}  // namespace headrace::tf::distribute
