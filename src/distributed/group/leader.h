// Who is in a group, and in which order: the task that leads answers each
// member once all have come.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "distributed/transport.h"
#include "headrace/collective.pb.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace headrace::distributed {

// What a leader keeps, whoever asks: groups that are whole stay until Forget,
// and a peer may make any number of them, of one member each.
struct GroupLimits {
  size_t groups = 1 << 16;
  size_t bytes = 64 << 20;  // of names, attributes, answers and calls that wait
};

// Thread-safe. Calls are answered behind the lock.
class GroupLeader : public std::enable_shared_from_this<GroupLeader> {
 public:
  explicit GroupLeader(GroupLimits limits = {}) : limits_(limits) {}

  // Ranks are those that members say, else the order of their devices' names,
  // by number. Internal, InvalidArgument or Aborted for one that cannot be a
  // member, ResourceExhausted where the leader would keep more than its limits.
  void Join(const JoinGroupRequest& request, std::shared_ptr<ServerCall> call);
  // The same of a member that speaks TensorFlow's messages (ring/ring.h), as
  // either all of a group do or none.
  void Join(const tensorflow::CompleteGroupRequest& request,
            std::shared_ptr<ServerCall> call);
  // The rank of a member of such a group. InvalidArgument where it is none, or
  // the group is not whole.
  StatusOr<int> RankIn(int64_t group_key, const std::string& device);
  // All who wait get the error; a group's next members begin anew.
  void Forget(const Status& why);
  // How many groups there are, and how many bytes they keep.
  size_t groups();
  size_t bytes();

 private:
  struct Member {
    std::string device;
    uint64_t incarnation = 0;
    std::vector<std::shared_ptr<ServerCall>> calls;  // that wait
    tensorflow::DeviceAttributes attributes;         // of TensorFlow's messages
    size_t bytes = 0;  // that it keeps, without calls
  };
  struct Group {
    int size = 0;
    bool ranked = false;
    bool rings = false;                     // speaks TensorFlow's messages
    std::map<std::string, Member> members;  // by what sorts as ranks do
    std::shared_ptr<const Bytes> whole;     // the answer, once all are there
    size_t bytes = 0;                       // that it keeps
  };
  using Calls = std::vector<std::shared_ptr<ServerCall>>;

  void JoinAs(const JoinGroupRequest& request,
              const tensorflow::DeviceAttributes* attributes,
              std::shared_ptr<ServerCall> call);
  // ResourceExhausted where so much more is beyond the limits.
  Status CheckRoom(const JoinGroupRequest& request, size_t more)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Calls TakeWaiting(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why a group does not take this member.
  static Status CheckMember(const Group& group, const JoinGroupRequest& request,
                            bool rings, const std::string& place);
  static Bytes AnswerOfWhole(const JoinGroupRequest& request,
                             const Group& group);
  Status Add(Group& group, const JoinGroupRequest& request,
             const tensorflow::DeviceAttributes* attributes,
             const std::shared_ptr<ServerCall>& call, Calls* waiting,
             Calls* replaced) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(int64_t group_key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(int64_t group_key, const std::shared_ptr<ServerCall>& call);

  const GroupLimits limits_;
  Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Group> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
