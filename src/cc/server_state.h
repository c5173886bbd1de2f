// What handles of a task share.
#pragma once

#include <memory>
#include <string>

#include "distributed/task/process.h"
#include "headrace/cluster.h"

namespace headrace::tf::internal {

// A cluster as its tasks tell it: of a task of it, or of one that is not.
tensorflow::ServerDef DefOf(const distribute::ClusterSpec& cluster,
                            const std::string& job, int index);

}  // namespace headrace::tf::internal

namespace headrace::tf::distribute {

struct Server::State {
  std::shared_ptr<headrace::distributed::Server> task;
  ~State() {
    if (task != nullptr) task->Stop();
  }
};

}  // namespace headrace::tf::distribute
