// The servers of the data service, for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bind/cluster/cluster.h"
#include "bind/python/unlocked.h"
#include "distributed/data_service/process.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

using namespace distributed::data_service;  // NOLINT: what it binds
using std::chrono::milliseconds;

// Zero: as it is by default.
void SetTime(int64_t given, milliseconds* time) {
  if (given > 0) *time = milliseconds(given);
}

template <typename S>
class DataServerCore {
 public:
  explicit DataServerCore(std::unique_ptr<S> server)
      : server_(std::move(server)) {}

  void Start() {
    RunUnlocked([&] { return server_->Start(); });
  }
  void Join() {
    RunUnlocked([&] { return server_->Join(); });
  }
  void Stop() {
    WithoutGil unlocked(true);
    server_->Stop();
  }
  int port() const { return server_->port(); }
  S& server() { return *server_; }

 private:
  const std::unique_ptr<S> server_;
};
using DispatchServerCore = DataServerCore<DispatchServer>;
using WorkerServerCore = DataServerCore<WorkerServer>;

std::unique_ptr<DispatchServerCore> MakeDispatchServer(
    const std::string& protocol, int port, const std::string& work_dir,
    bool fault_tolerant, std::vector<std::string> worker_addresses,
    int64_t gc_interval, int64_t gc_timeout, int64_t worker_timeout) {
  DispatcherOptions options;
  options.work_dir = work_dir;
  options.fault_tolerant = fault_tolerant;
  options.worker_addresses = std::move(worker_addresses);
  SetTime(gc_interval, &options.gc_interval);
  SetTime(gc_timeout, &options.gc_timeout);
  SetTime(worker_timeout, &options.worker_timeout);
  return std::make_unique<DispatchServerCore>(RunUnlocked(
      [&] { return NewDispatchServer(protocol, port, std::move(options)); }));
}

std::unique_ptr<WorkerServerCore> MakeWorkerServer(
    const std::string& protocol, int port, const std::string& dispatcher,
    const std::string& address, int64_t heartbeat, int64_t timeout) {
  WorkerOptions options;
  options.dispatcher = dispatcher;
  options.address = address;
  SetTime(heartbeat, &options.heartbeat);
  SetTime(timeout, &options.dispatcher_timeout);
  return std::make_unique<WorkerServerCore>(RunUnlocked(
      [&] { return NewWorkerServer(protocol, port, std::move(options)); }));
}

int NumWorkers(DispatchServerCore& core) {
  const auto dispatcher = core.server().dispatcher();
  return dispatcher ? static_cast<int>(dispatcher->Workers().size()) : 0;
}

// (element_spec as a StructuredValue, cardinality) of a registered dataset.
nb::tuple Describe(const std::string& protocol, const std::string& dispatcher,
                   const std::string& id) {
  const ServiceDataset dataset =
      RunUnlocked([&] { return DescribeDataset(protocol, dispatcher, id); });
  const std::string& spec = dataset.element_spec();
  return nb::make_tuple(nb::bytes(spec.data(), spec.size()),
                        dataset.cardinality());
}

template <typename Core>
nb::class_<Core> AddServer(nb::module_& m, const char* name) {
  return nb::class_<Core>(m, name)
      .def("start", &Core::Start)
      .def("join", &Core::Join)
      .def("stop", &Core::Stop)
      .def_prop_ro("port", &Core::port);
}

}  // namespace

void AddDataService(nb::module_& m) {
  AddServer<DispatchServerCore>(m, "DispatchServerCore")
      .def_prop_ro("num_workers", &NumWorkers);
  AddServer<WorkerServerCore>(m, "WorkerServerCore")
      .def_prop_ro("num_tasks", [](WorkerServerCore& core) {
        return core.server().num_tasks();
      });
  m.def("dispatch_server", &MakeDispatchServer);
  m.def("worker_server", &MakeWorkerServer);
  m.def("service_dataset", &Describe);
}

}  // namespace headrace::bind
