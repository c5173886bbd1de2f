// Eager ops on other tasks of a cluster.
#include "distributed/eager/remote_context.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bind/cluster/cluster.h"
#include "bind/python/unlocked.h"
#include "bind/value/tensor_object.h"
#include "distributed/task/process.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

using distributed::RemoteContext;

// A connection to the tasks of a cluster, until it is closed.
class RemoteContextCore {
 public:
  // `seconds`: how long tasks that are not up yet are waited for.
  RemoteContextCore(const nb::bytes& server_def, int64_t keep_alive_secs,
                    double seconds) {
    distributed::RemoteOptions options;
    if (!options.def.ParseFromArray(server_def.data(),
                                    static_cast<int>(server_def.size()))) {
      throw nb::value_error("no such proto");
    }
    options.keep_alive_secs = keep_alive_secs;
    options.deadline =
        distributed::Clock::now() +
        std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    context_ = RunUnlocked([&] {
      server_ = distributed::ListenForParts(&options);
      return distributed::ConnectEagerly(options);
    });
    // Functions of this process may name the tasks from now on.
    SetConnectedTasks(context_->calls());
  }
  ~RemoteContextCore() {
    if (context_) Close();
  }

  // (name, type, bytes, incarnation) of each device.
  nb::list Devices() {
    nb::list out;
    for (const auto& d : context_->devices()) {
      out.append(nb::make_tuple(d.name(), d.device_type(), d.memory_limit(),
                                d.incarnation()));
    }
    return out;
  }
  // Ops of this thread go there from now on. The device's full name.
  std::string Enter(const std::string& device) {
    auto place = RunUnlocked([&] { return context_->PlaceOf(device); });
    std::string name = place->device();
    SetThisPlace(std::move(place));
    return name;
  }
  void CheckAlive(const std::string& task) {
    RunUnlocked([&] { return context_->CheckAlive(task); });
  }
  void Close() {
    if (ConnectedTasks() == context_->calls()) SetConnectedTasks(nullptr);
    RunUnlocked([&] {
      context_->Close();
      if (server_) server_->Stop();
      return OkStatus();
    });
  }

 private:
  std::unique_ptr<distributed::Server> server_;
  std::shared_ptr<RemoteContext> context_;
};

// Of an eager tensor; empty where it is this process'.
std::string RemoteDevice(nb::handle tensor) {
  const Value v = ValueOrHandle(tensor);
  return v.is_symbolic() ? "" : distributed::RemoteDeviceOf(v.tensor());
}

}  // namespace

void AddRemoteContext(nb::module_& m) {
  nb::class_<RemoteContextCore>(m, "RemoteContextCore")
      .def(nb::init<const nb::bytes&, int64_t, double>())
      .def("devices", &RemoteContextCore::Devices)
      .def("enter", &RemoteContextCore::Enter)
      .def("check_alive", &RemoteContextCore::CheckAlive)
      .def("close", &RemoteContextCore::Close);
  // Ops of this thread run in this process from now on.
  m.def("leave_place", [] { SetThisPlace(nullptr); });
  m.def("remote_device", &RemoteDevice);
}

}  // namespace headrace::bind
