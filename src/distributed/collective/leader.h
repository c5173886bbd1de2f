// Who is in a group, and in which order: the task that leads answers each
// member once all have come.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "distributed/transport.h"
#include "headrace/collective.pb.h"

namespace headrace::distributed {

// Thread-safe. Calls are answered behind the lock.
class GroupLeader : public std::enable_shared_from_this<GroupLeader> {
 public:
  // Ranks are those that members say, else the order of their devices' names,
  // by number. Internal, InvalidArgument or Aborted for one that cannot be a
  // member.
  void Join(const JoinGroupRequest& request, std::shared_ptr<ServerCall> call);
  // All who wait get the error; a group's next members begin anew.
  void Forget(const Status& why);

 private:
  struct Member {
    std::string device;
    uint64_t incarnation = 0;
    std::vector<std::shared_ptr<ServerCall>> calls;  // that wait
  };
  struct Group {
    int size = 0;
    bool ranked = false;
    std::map<std::string, Member> members;  // by what sorts as ranks do
    std::shared_ptr<const JoinGroupResponse> whole;  // once all are there
  };
  using Calls = std::vector<std::shared_ptr<ServerCall>>;

  Status Add(Group& group, const JoinGroupRequest& request,
             const std::shared_ptr<ServerCall>& call, Calls* waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(int64_t group_key, const std::shared_ptr<ServerCall>& call);

  Mutex mutex_;
  std::map<int64_t, Group> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
