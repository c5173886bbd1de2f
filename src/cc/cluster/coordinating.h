// What a ClusterCoordinator is: a thread a worker, which has that run one
// scheduled function after another.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "cc/cluster/scheduled.h"
#include "cc/servers.h"

namespace headrace::tf::internal {

// Thread-safe.
class Coordinating {
 public:
  explicit Coordinating(std::shared_ptr<Servers> servers);
  // Cancels what was scheduled.
  ~Coordinating();

  Servers& servers() { return *servers_; }
  std::shared_ptr<Servers> shared_servers() { return servers_; }
  headrace::distributed::CallQueue& queue() { return queue_; }

 private:
  using Taken = headrace::distributed::CallQueue::Taken;

  void Work(int worker);
  // Until the worker answers; false where it is given up, or all ends.
  bool Join(WorkersLife* life);
  // The next calls for a worker; none where there will be none. One alone where
  // others might take those behind it, or where any may take long.
  std::vector<Taken> TakeFor(const WorkersLife& life);
  // These are false where the worker is lost.
  bool RunOne(const Taken& taken, WorkersLife* life);
  bool RunShort(std::vector<Taken> taken, WorkersLife* life);
  // A call has failed.
  bool EndedBy(const Status& s, const Taken& taken, WorkersLife* life);
  void GiveUp(int worker);

  const std::shared_ptr<Servers> servers_;
  headrace::distributed::CallQueue queue_;
  CancellationToken ending_;  // what threads wait for besides calls
  std::atomic<uint64_t> lives_{0};
  std::atomic<int> left_;  // workers that are not given up
  std::vector<std::thread> threads_;
};

}  // namespace headrace::tf::internal
