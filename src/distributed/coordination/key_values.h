// What tasks tell each other by names, as TensorFlow's coordination service
// keeps it. Names are paths: "/a//b/" is "a/b".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "distributed/transport.h"
#include "xla/tsl/protobuf/coordination_service.pb.h"

namespace headrace::distributed {

struct KeyValueLimits {
  // Of names and values together: any peer may tell some.
  size_t bytes = size_t{64} << 20;
  size_t entries = 65536;
  size_t waiting = 4096;  // calls that wait for a name
  size_t name = 8192;     // bytes of one
};

// Thread-safe. Calls are answered behind the lock.
class KeyValues : public std::enable_shared_from_this<KeyValues> {
 public:
  explicit KeyValues(KeyValueLimits limits = {}) : limits_(limits) {}

  // By path; null services give the paths alone.
  static std::map<std::string, Method> Methods(
      std::shared_ptr<KeyValues> values);
  // Who waits gets the error, and who would wait from now on.
  void Stop(const Status& why);

 private:
  using Call = std::shared_ptr<ServerCall>;
  struct Waiting {
    std::string asked;  // the name as the caller wrote it
    Call call;
  };

  // What a key is kept under; InvalidArgument for one that is too long.
  StatusOr<std::string> NameOf(const std::string& key) const;
  // Keeps the value, and gives it to those who wait, whose ends are added to
  // `then`.
  Status Keep(const std::string& name, std::string value,
              std::vector<std::pair<Call, Answer>>* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(std::map<std::string, std::string>::iterator at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Status Insert(const tensorflow::InsertKeyValueRequest& request);
  void Get(const tensorflow::GetKeyValueRequest& request, const Call& call);
  Status TryGet(const std::string& key, tensorflow::KeyValueEntry* kv);
  Status Increment(const tensorflow::IncrementKeyValueRequest& request,
                   tensorflow::KeyValueEntry* kv);
  Status List(const std::string& directory,
              tensorflow::GetKeyValueDirResponse* response);
  Status Delete(const tensorflow::DeleteKeyValueRequest& request);

  const KeyValueLimits limits_;
  Mutex mutex_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::multimap<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  Status stopped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
