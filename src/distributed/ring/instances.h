// What the members of a group do together, as the task that leads has it: those
// who do not agree get an error, those who receive a broadcast are told who
// sends it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "distributed/transport.h"
#include "ops/collective/collective.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace headrace::distributed {

// What a request tells of a call: kind, keys, dtype, shape, no operation.
StatusOr<CollectiveCall> CallOf(
    const tensorflow::CompleteInstanceRequest& request);

// Thread-safe. Calls are answered behind the lock.
class InstanceLeader : public std::enable_shared_from_this<InstanceLeader> {
 public:
  // `rank`: of the device that asks. Internal and InvalidArgument as
  // CheckAgreement and CheckSources.
  void Complete(const tensorflow::CompleteInstanceRequest& request, int rank,
                std::shared_ptr<ServerCall> call);
  // All who wait in that group get the error; what was agreed on is forgotten.
  void End(int64_t group_key, const Status& why);
  void EndAll(const Status& why);

 private:
  using Key = std::pair<int64_t, int64_t>;  // of group and instance
  using Calls = std::vector<std::shared_ptr<ServerCall>>;
  struct Instance {
    CollectiveCall first;
    std::set<int> seen;  // ranks
    int source = -1;
    Calls waiting;
  };
  Status Add(Instance& instance, const CollectiveCall& call,
             const std::string& device, bool is_source, int rank);
  void Remove(const Key& key, const std::shared_ptr<ServerCall>& call);

  Mutex mutex_;
  std::map<Key, Instance> instances_ ABSL_GUARDED_BY(mutex_);
  std::deque<Key> order_ ABSL_GUARDED_BY(mutex_);  // as they came
};

}  // namespace headrace::distributed
