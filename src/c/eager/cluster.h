// The cluster of a context, whose ops may run on its tasks.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "c/devices.h"
#include "distributed/task/process.h"

namespace headrace::capi {

// A device, as handles tell it; kept by all handles of what ran there.
struct EagerDevice {
  std::string name;
  // What this process calls it where no cluster says otherwise.
  std::string backing;
};
using EagerDevicePtr = std::shared_ptr<const EagerDevice>;

// Where an op runs.
struct EagerPlace {
  std::shared_ptr<RemotePlace> remote;  // null: in this process
  EagerDevicePtr device;                // null: its first processor
};

// What TFE_ContextSetServerDef and its kin are given.
struct ClusterWish {
  tensorflow::ServerDef def;
  int64_t keep_alive_secs = 0;
  int64_t timeout_ms = 0;  // 0: as long as clusters are waited for
  int retries = 0;
  bool clear_existing_contexts = false;
  // The context's, which outlives the cluster.
  std::shared_ptr<const FunctionLibrary> library = nullptr;
  ResourceManager* resources = nullptr;
};

// This process as a task of a cluster: it listens, so that other tasks may use
// it, and has a context on each of them. Thread-safe.
class EagerCluster {
 public:
  // `processors`: of this process. What NewServer and ConnectEagerly report.
  static StatusOr<std::shared_ptr<EagerCluster>> Make(ClusterWish wish,
                                                      int processors);
  ~EagerCluster() { Close(); }

  // RemoteContext::Update's errors.
  Status Update(const ClusterWish& wish);
  // Ops on other tasks are FailedPrecondition from now on.
  void Close();

  // What the name leaves open is this process's first processor, or the first
  // one of the task that is named. InvalidArgument for what is no name, and for
  // a processor that this process does not have; on a device that no task has,
  // ops are.
  StatusOr<EagerPlace> PlaceOf(const std::string& device) const;
  // As ops without a device run.
  EagerPlace Here() const { return {nullptr, processors_[0]}; }
  // Of this task, and then of the others.
  void AddDevices(TF_DeviceList* list) const;
  // Whether the task of that def listens where this one does.
  bool ListensAt(const tensorflow::ServerDef& def) const;
  distributed::RemoteContext& remote() const { return *remote_; }

 private:
  EagerCluster() = default;
  std::vector<std::string> DeviceNames() const;

  tensorflow::ServerDef asked_;
  DeviceName own_;
  std::vector<EagerDevicePtr> processors_;
  std::unique_ptr<distributed::Server> server_;
  std::shared_ptr<distributed::RemoteContext> remote_;
};

}  // namespace headrace::capi
