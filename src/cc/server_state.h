// What handles of a task share.
#pragma once

#include <memory>

#include "distributed/task/process.h"
#include "headrace/cluster.h"

namespace headrace::tf::distribute {

struct Server::State {
  std::shared_ptr<headrace::distributed::Server> task;
  ~State() {
    if (task != nullptr) task->Stop();
  }
};

}  // namespace headrace::tf::distribute
