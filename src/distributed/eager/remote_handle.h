// What a client of eager ops knows of a task, and of the tensors that it keeps.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/device_name.h"
#include "base/mutex.h"
#include "distributed/transport.h"
#include "op/remote_place.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/protobuf/eager_service.pb.h"

namespace headrace::distributed {

struct RemoteTask {
  DeviceName name;
  std::string address;
  std::shared_ptr<Channel> channel;
  // By the names that the cluster gives them.
  std::vector<tensorflow::DeviceAttributes> devices;
  std::atomic<bool> gone{false};  // the cluster does not have it any more
  Mutex mutex;
  // That it was told of; false where that has not been answered.
  std::map<std::string, bool> functions ABSL_GUARDED_BY(mutex);
  // By operation and output: tensors that nobody here holds any more.
  std::vector<std::pair<int64_t, int>> dropped ABSL_GUARDED_BY(mutex);
};

// A tensor that a task keeps for this process, until nobody holds it.
class RemoteHandle {
 public:
  // `device` is one of the task's.
  RemoteHandle(std::shared_ptr<RemoteTask> task,
               const tensorflow::DeviceAttributes* device, int64_t op,
               int output, DType dtype)
      : task_(std::move(task)),
        device_(device),
        op_(op),
        output_(output),
        dtype_(dtype) {}
  ~RemoteHandle();
  RemoteHandle(const RemoteHandle&) = delete;

  const std::string& device() const { return device_->name(); }
  bool Of(const RemoteTask& task) const { return task_.get() == &task; }
  void Write(tensorflow::eager::RemoteTensorHandle* out) const;
  const DeviceName& task() const { return task_->name; }
  int64_t op() const { return op_; }
  int output() const { return output_; }

 private:
  const std::shared_ptr<RemoteTask> task_;
  const tensorflow::DeviceAttributes* const device_;
  const int64_t op_;
  const int output_;
  const DType dtype_;
};
using RemoteHandlePtr = std::shared_ptr<const RemoteHandle>;

// Which task has the tensor, too, which came from there or was sent; null for
// others.
RemoteHandlePtr FindHandle(const Tensor& t);
// The same value, of which is known where else it is.
Tensor Remembered(Tensor t, RemoteHandlePtr handle);

// Whether values of the type come here; of others only a name does.
inline bool TravelsByValue(DType dtype) {
  return dtype != DType::kResource && dtype != DType::kVariant;
}

// What this process holds of a resource or variant of a task.
class NameHere : public RemoteName {
 public:
  NameHere(RemoteHandlePtr handle, std::shared_ptr<RemotePlace> place)
      : handle_(std::move(handle)), place_(std::move(place)) {}
  const std::shared_ptr<RemotePlace>& place() const override { return place_; }
  const RemoteHandle& handle() const { return *handle_; }

 private:
  const RemoteHandlePtr handle_;
  const std::shared_ptr<RemotePlace> place_;
};

// A resource or variant here that names the one there; `data`: what is known of
// the resource, may be null.
Tensor NameOf(DType dtype, RemoteHandlePtr handle,
              std::shared_ptr<RemotePlace> place,
              std::shared_ptr<const HandleData> data);

// The device of another task that has the tensor, which came from there or is a
// name of what lies there; empty for others.
std::string RemoteDeviceOf(const Tensor& t);

}  // namespace headrace::distributed
