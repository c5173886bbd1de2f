// The tasks of a cluster and their addresses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/device_name.h"
#include "base/mutex.h"
#include "distributed/transport.h"
#include "tensorflow/core/protobuf/tensorflow_server.pb.h"

namespace headrace::distributed {

using Dial =
    std::function<std::shared_ptr<Channel>(const std::string& address)>;

// Whether `address` is host:port, and the port.
bool ParsePort(StringView address, int* port);
// InvalidArgument, in upstream's words, where it is not.
Status CheckAddress(StringView address);

// Thread-safe.
class Cluster {
 public:
  // InvalidArgument for a cluster in which a task's address is not host:port,
  // or that does not have the ServerDef's own task.
  static StatusOr<std::shared_ptr<Cluster>> Make(
      const tensorflow::ServerDef& def, Dial dial);

  // The same as another ServerDef has it, of the same task.
  StatusOr<std::shared_ptr<Cluster>> With(
      const tensorflow::ServerDef& def) const {
    return Make(def, dial_);
  }

  const tensorflow::ServerDef& def() const { return def_; }
  // By job and index: all tasks, this one among them.
  const std::map<std::pair<std::string, int>, std::string>& tasks() const {
    return addresses_;
  }
  // Null where there is no such task.
  std::shared_ptr<Channel> ChannelOf(const DeviceName& task);
  // A new one, to any address.
  std::shared_ptr<Channel> ChannelTo(const std::string& address) const {
    return dial_(address);
  }

 private:
  tensorflow::ServerDef def_;
  Dial dial_;
  std::map<std::pair<std::string, int>, std::string> addresses_;
  Mutex mutex_;
  std::map<std::pair<std::string, int>, std::shared_ptr<Channel>> channels_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
