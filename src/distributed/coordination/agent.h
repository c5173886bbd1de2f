// A task's side of the coordination service of the task that leads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/device_name.h"
#include "distributed/event_loop.h"
#include "distributed/transport.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "xla/tsl/protobuf/coordination_service.pb.h"

namespace headrace::distributed {

struct AgentOptions {
  DeviceName task, leader;
  uint64_t incarnation = 0;
  std::vector<tensorflow::DeviceAttributes> devices;
  std::shared_ptr<Channel> channel;  // to the leader
  // How often it tells that it lives, which is when the leader looks who does
  // not (TensorFlow's tasks: every five seconds); and how long the leader may
  // not answer.
  std::chrono::milliseconds beat{2'000}, silence{10'000};
  // How long others are waited for.
  std::chrono::milliseconds patience{600'000};
  // Called once where the leader is gone, or tells that another task is.
  std::function<void(const Status&)> lost;
};

// Thread-safe.
class CoordinationAgent
    : public std::enable_shared_from_this<CoordinationAgent> {
 public:
  explicit CoordinationAgent(AgentOptions options)
      : options_(std::move(options)) {}

  // Registers, waits for all others as CheckStop allows, and tells from then on
  // that this task lives.
  Status Start();
  // Tells nothing more, as TensorFlow's tasks at their ends: collectives that
  // wait for this one fail when the leader notices. A failure is told at once.
  void Stop(const Status& failure = OkStatus());

 private:
  tensorflow::CoordinatedTask Self() const;
  Status Ask(const char* path, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* response);
  void Beat();
  void Answered(const Status& s);

  const AgentOptions options_;
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point heard_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<EventLoop> loop_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
