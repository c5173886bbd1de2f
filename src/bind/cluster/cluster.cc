#include "bind/cluster/cluster.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "bind/python/graph_object.h"
#include "bind/python/unlocked.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "distributed/nccl/nccl_library.h"
#include "distributed/task/process.h"
#include "ops/collective/collective.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

using distributed::ClientSession;
using distributed::Server;
using distributed::StepRequest;
using distributed::StepResult;
using distributed::StepsTogether;

template <typename Message>
Message Parsed(const nb::bytes& bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw nb::value_error("no such proto");
  }
  return message;
}

nb::bytes Written(const google::protobuf::MessageLite& message) {
  const std::string text = message.SerializeAsString();
  return nb::bytes(text.data(), text.size());
}

std::chrono::milliseconds MillisecondsOf(double seconds) {
  constexpr double kMost = 1e9;  // three decades are as good as ever
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::clamp(seconds, 0.0, kMost) * 1e3));
}

std::string NameOf(const Value& v) {
  return absl::StrCat(v.node()->name(), ":", v.index());
}

nb::object ArrayOf(Tensor t) {
  nb::object owner = WrapObject(Value(t));
  PyObject* array = TensorToNumpy(t, owner.ptr());
  if (array == nullptr) nb::raise_python_error();
  return nb::steal(array);
}

nb::list Arrays(std::vector<Tensor> tensors) {
  nb::list out;
  for (Tensor& t : tensors) out.append(ArrayOf(std::move(t)));
  return out;
}

// Steps under way that were sent together.
class ClusterSteps {
 public:
  explicit ClusterSteps(std::unique_ptr<StepsTogether> steps)
      : steps_(std::move(steps)) {}

  // Whether all have ended, within so many seconds.
  bool Wait(double seconds) {
    return RunUnlocked([&] { return steps_->Wait(MillisecondsOf(seconds)); });
  }
  // Lists of arrays of further steps that ended well, in their order.
  nb::list Take() {
    nb::list out;
    for (StepResult& r : RunUnlocked([&] { return steps_->Take(); })) {
      failed_ = std::move(r.status);
      if (failed_.ok()) out.append(Arrays(std::move(r.fetched)));
    }
    return out;
  }
  // Raises the error of the step behind those that were taken, or of the call;
  // without one no other step was begun. When all have ended and are taken.
  void Check() const {
    if (!failed_.ok()) ThrowStatus(failed_);
    if (const Status s = steps_->end(); !s.ok()) ThrowStatus(s);
  }
  // How many have begun, of which there will be no more; None where the master
  // does not know of the call.
  std::optional<size_t> GiveBack() {
    return RunUnlocked([&] { return steps_->GiveBack(); });
  }

 private:
  const std::unique_ptr<StepsTogether> steps_;
  Status failed_;
};

// A session of a server's, with SessionCore's face.
class ClusterSessionCore {
 public:
  ClusterSessionCore(PyGraph& g, const std::string& target,
                     const nb::bytes& config)
      : graph_(g.graph()) {
    const auto proto = Parsed<tensorflow::ConfigProto>(config);
    RunUnlocked([&]() -> Status {
      HR_ASSIGN_OR_RETURN(auto stub, distributed::StubOf(target));
      session_ = std::make_unique<ClientSession>(std::move(stub), graph_, proto,
                                                 target);
      return OkStatus();
    });
  }
  ~ClusterSessionCore() {
    if (session_ == nullptr) return;
    WithoutGil unlocked(true);
    session_.reset();
  }

  // run(fetches, targets, feeds, values, options): tensors and nodes of the
  // graph, eager tensors, a serialised RunOptions. The arrays, and a serialised
  // RunMetadata.
  nb::tuple Run(nb::sequence fetches, nb::sequence targets, nb::sequence feeds,
                nb::sequence values, const nb::bytes& options) {
    StepRequest request = RequestOf(fetches, targets, feeds, values);
    if (options.size() > 0) {
      request.options = Parsed<tensorflow::RunOptions>(options);
    }
    std::vector<Tensor> fetched;
    tensorflow::RunMetadata metadata;
    RunUnlocked(
        [&] { return session_->Run(std::move(request), &fetched, &metadata); });
    return nb::make_tuple(Arrays(std::move(fetched)), Written(metadata));
  }

  // run_together([(fetches, targets, feeds, values), ...], within):
  // ClusterSteps of which none but the first begins later than that many
  // seconds.
  std::unique_ptr<ClusterSteps> RunTogether(nb::sequence steps, double within) {
    std::vector<StepRequest> requests;
    for (nb::handle step : steps) {
      requests.push_back(RequestOf(step[0], step[1], step[2],
                                   std::optional<nb::handle>(step[3])));
    }
    const auto until = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::duration<double>(std::clamp(within, 0.0, 1.0)));
    return std::make_unique<ClusterSteps>(RunUnlocked(
        [&] { return session_->RunTogether(std::move(requests), until); }));
  }

  std::string SetUp(nb::sequence fetches, nb::sequence targets,
                    nb::sequence feeds) {
    const StepRequest request =
        RequestOf(fetches, targets, feeds, std::nullopt);
    tensorflow::PartialRunSetupRequest setup;
    for (const auto& [name, tensor] : request.feeds) setup.add_feed(name);
    for (const std::string& name : request.fetches) setup.add_fetch(name);
    for (const std::string& name : request.targets) setup.add_target(name);
    const std::string run =
        RunUnlocked([&] { return session_->SetUpPartialRun(setup); });
    return run;
  }

  nb::list RunPart(const std::string& run, nb::sequence fetches,
                   nb::sequence feeds, nb::sequence values) {
    StepRequest request = RequestOf(fetches, nb::list(), feeds, values);
    std::vector<Tensor> fetched;
    RunUnlocked(
        [&] { return session_->RunPart(run, std::move(request), &fetched); });
    return Arrays(std::move(fetched));
  }

  // (name, type, bytes, incarnation) of each device.
  nb::list Devices() {
    const tensorflow::ListDevicesResponse response =
        RunUnlocked([&] { return session_->ListDevices(); });
    nb::list out;
    const auto add = [&](const auto& devices) {
      for (const auto& d : devices) {
        out.append(nb::make_tuple(d.name(), d.device_type(), d.memory_limit(),
                                  d.incarnation()));
      }
    };
    add(response.local_device());
    add(response.remote_device());
    return out;
  }

  void Close() {
    RunUnlocked([&] {
      session_->Close().IgnoreError();  // the master may be gone
      return OkStatus();
    });
  }

 private:
  StepRequest RequestOf(nb::handle fetches, nb::handle targets,
                        nb::handle feeds,
                        std::optional<nb::handle> values) const {
    StepRequest request;
    for (nb::handle o : fetches) request.fetches.push_back(NameOf(Mine(o)));
    for (nb::handle o : targets) {
      const NodeRef n = nb::cast<NodeRef>(o);
      if (n.graph != graph_) throw nb::value_error("a node of another graph");
      request.targets.push_back(n.node->name());
    }
    for (nb::handle o : feeds) {
      request.feeds.emplace_back(NameOf(Mine(o)), Tensor());
    }
    if (!values) return request;
    size_t i = 0;
    for (nb::handle o : *values) {
      const Value v = ValueOrHandle(o);
      if (v.is_symbolic() || i >= request.feeds.size()) {
        throw nb::type_error("a feed's value is eager");
      }
      request.feeds[i++].second = v.tensor();
    }
    if (i != request.feeds.size()) throw nb::value_error("a value a feed");
    return request;
  }

  Value Mine(nb::handle o) const {
    Value v = ValueOrHandle(o);
    if (!v.is_symbolic() || v.graph() != graph_) {
      throw nb::value_error("a tensor of another graph");
    }
    return v;
  }

  const std::shared_ptr<Graph> graph_;
  std::unique_ptr<ClientSession> session_;
};

// A task of a cluster. It lives until it is stopped, whoever lets it go.
class ServerCore {
 public:
  explicit ServerCore(const nb::bytes& server_def) {
    const auto def = Parsed<tensorflow::ServerDef>(server_def);
    server_ = RunUnlocked([&] { return distributed::NewServer(def); });
  }

  void Start() { server_->Start(); }
  std::string target() const { return server_->target(); }
  void Join() {
    RunUnlocked([&] { return server_->Join(); });
  }
  // Collectives of this process go by this task from now on.
  void UseCollectives() { UseCollectiveEngine(server_->worker()->engine()); }
  // Whether groups may go by TensorFlow's messages (distributed/ring/ring.h).
  bool Rings() { return server_->worker()->collectives()->rings(); }
  // Why no collective of this process can go by NCCL; "": nothing is missing.
  std::string NcclMissing() {
    return std::string(
        distributed::NcclLibrary::OfProcess().status().message());
  }
  // Waits for these tasks, pairs of job and index.
  void Coordinate(const std::vector<std::pair<std::string, int>>& tasks) {
    RunUnlocked([&] {
      return server_->Coordinate(
          std::set<distributed::TaskId>(tasks.begin(), tasks.end()));
    });
  }
  // (number, devices by rank) of the generation that this task is in
  // (distributed/collective/membership.h); times in seconds.
  nb::tuple Regroup(int64_t key, const std::vector<std::string>& tasks,
                    size_t fewest, double all_within, double timeout) {
    distributed::GroupSearch search;
    search.group_key = key;
    for (const std::string& task : tasks) {
      if (!DeviceName::Parse(task, &search.tasks.emplace_back())) {
        throw nb::value_error("no task");
      }
    }
    search.fewest = fewest;
    search.all_within = MillisecondsOf(all_within);
    search.timeout = MillisecondsOf(timeout);
    const headrace::Generation found =
        RunUnlocked([&] { return distributed::RegroupTask(*server_, search); });
    nb::list devices;
    for (const std::string& device : found.devices()) devices.append(device);
    return nb::make_tuple(found.number(), devices);
  }
  // The class' number and the text of a group's end; (0, "") while it is well.
  nb::tuple GroupStatus(int64_t key) {
    const Status s = server_->worker()->collectives()->GroupStatus(key);
    return nb::make_tuple(static_cast<int>(s.code()), std::string(s.message()));
  }
  void LeaveGroup(int64_t key) { server_->worker()->collectives()->Leave(key); }
  void Stop() {
    RunUnlocked([&] {
      server_->Stop();
      return OkStatus();
    });
  }

 private:
  std::shared_ptr<Server> server_;
};

void ResetCluster(const std::string& target,
                  const std::vector<std::string>& containers,
                  const nb::bytes& config) {
  const auto read = Parsed<tensorflow::ConfigProto>(config);
  RunUnlocked(
      [&] { return distributed::ResetCluster(target, containers, read); });
}

}  // namespace

void AddCluster(nb::module_& m) {
  nb::class_<ClusterSteps>(m, "ClusterSteps")
      .def("wait", &ClusterSteps::Wait)
      .def("take", &ClusterSteps::Take)
      .def("give_back", &ClusterSteps::GiveBack)
      .def("check", &ClusterSteps::Check);
  nb::class_<ClusterSessionCore>(m, "ClusterSessionCore")
      .def(nb::init<PyGraph&, const std::string&, const nb::bytes&>())
      .def("run", &ClusterSessionCore::Run)
      .def("run_together", &ClusterSessionCore::RunTogether)
      .def("partial_run_setup", &ClusterSessionCore::SetUp)
      .def("partial_run", &ClusterSessionCore::RunPart)
      .def("devices", &ClusterSessionCore::Devices)
      .def("close", &ClusterSessionCore::Close);
  nb::class_<ServerCore>(m, "ServerCore")
      .def(nb::init<const nb::bytes&>())
      .def_prop_ro("target", &ServerCore::target)
      .def("start", &ServerCore::Start)
      .def("join", &ServerCore::Join)
      .def("use_collectives", &ServerCore::UseCollectives)
      .def_prop_ro("rings", &ServerCore::Rings)
      .def_prop_ro("nccl_missing", &ServerCore::NcclMissing)
      .def("coordinate", &ServerCore::Coordinate)
      .def("regroup", &ServerCore::Regroup)
      .def("group_status", &ServerCore::GroupStatus)
      .def("leave_group", &ServerCore::LeaveGroup)
      .def("stop", &ServerCore::Stop);
  m.def("reset_cluster", &ResetCluster);
  m.def("allows_tensorflow", &distributed::AllowsTensorflow);
  AddRemoteContext(m);
  AddDataService(m);
}

}  // namespace headrace::bind
