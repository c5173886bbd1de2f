// The tasks that a coordinator uses: servers that are there as long as it is,
// and workers that come and go.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "distributed/task/process.h"
#include "op/remote_place.h"

namespace headrace::distributed {

// Thread-safe.
class Coordinated {
 public:
  // `def`: the whole cluster, with this process as one of its tasks that is
  // neither a "ps" nor a "worker". Waits for all servers until the deadline,
  // and for no worker. What an earlier coordinator has left on the tasks ends.
  static StatusOr<std::shared_ptr<Coordinated>> Connect(
      const tensorflow::ServerDef& def, Clock::time_point deadline);
  ~Coordinated();

  // In the order of their numbers in the cluster.
  const std::vector<std::shared_ptr<RemotePlace>>& servers() const {
    return servers_;
  }
  int num_workers() const { return static_cast<int>(workers_.size()); }
  // The task's full name.
  const std::string& WorkerName(int worker) const {
    return workers_[worker].name;
  }

  // Takes in a worker that answers, which has nothing yet of what an earlier
  // life of it had; Unavailable, soon, where it does not. Where it is to be
  // reached until Leave.
  StatusOr<std::shared_ptr<RemotePlace>> Join(int worker);
  void Leave(int worker);
  // Functions that run in steps.
  SpreadCalls& calls() { return *context_->calls(); }
  // What is wrong with a worker that joined; OK where it is as it was.
  Status CheckWorker(int worker);
  // The same of the first server of which something is wrong: Unavailable,
  // which names it.
  Status CheckServers();
  // Calls under way end, as all later ones do.
  void Close();

 private:
  struct Task {
    std::string name, address;
    int index = 0;
  };

  Coordinated() = default;
  // The cluster without workers but those.
  RemoteOptions OptionsWith(const std::set<int>& workers,
                            Clock::time_point deadline) const;

  RemoteOptions options_;
  std::vector<Task> workers_;
  std::vector<std::string> server_names_;
  std::vector<std::shared_ptr<RemotePlace>> servers_;
  std::unique_ptr<Server> listening_;
  std::shared_ptr<RemoteContext> context_;
  Mutex mutex_;
  std::set<int> joined_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
