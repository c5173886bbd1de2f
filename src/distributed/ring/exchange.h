// Parts of collectives that a task's members give, until their neighbours have
// asked for them by RecvBuf.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "distributed/transport.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace headrace::distributed {

// Thread-safe. Calls are answered behind the lock.
class BufExchange : public std::enable_shared_from_this<BufExchange> {
 public:
  // For the one who asks by that key, once. The owners of the pieces keep them
  // as they are. Nothing in a group that has ended.
  void Give(int64_t group_key, const std::string& key, Bytes content);
  // Answers when the part is there. InvalidArgument for a key that is none, or
  // where the part has another size; ResourceExhausted where too many wait.
  void Answer(const tensorflow::RecvBufRequest& request,
              std::shared_ptr<ServerCall> call);
  // Who asks for parts of that group gets the error, from now on.
  void End(int64_t group_key, const Status& why);
  // The same of all groups.
  void EndAll(const Status& why);
  // Groups that have ended may begin again.
  void Forget();
  // Whether somebody is yet to ask for what was given, or to be answered.
  bool Owes();

 private:
  using Calls = std::vector<std::shared_ptr<ServerCall>>;
  struct Spot {
    std::deque<Bytes> given;
    struct Asker {
      std::shared_ptr<ServerCall> call;
      int64_t size = 0;
    };
    std::deque<Asker> asking;
  };
  struct Group {
    Status status;
    std::map<std::string, Spot> spots;
  };
  void Forget(int64_t group_key, const std::string& key,
              const std::shared_ptr<ServerCall>& call);
  void Drop(Group& group, Calls* asking) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  Status ended_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Group> groups_ ABSL_GUARDED_BY(mutex_);
  size_t asking_ ABSL_GUARDED_BY(mutex_) = 0;
  // Calls that are being answered: the part is taken, the answer not yet given.
  size_t answering_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace::distributed
