#include "distributed/task/process.h"

#include <cstdlib>

#include "distributed/process_transport.h"
#include "op/resource.h"

namespace headrace::distributed {

bool AllowsTensorflow() {
  const char* said = std::getenv("HEADRACE_TENSORFLOW_PEERS");
  return said != nullptr && StringView(said) == "1";
}

StatusOr<Carrier> CarrierOfProcess() {
  const char* given = std::getenv("HEADRACE_COLLECTIVES");
  const StringView said = given == nullptr ? "" : given;
  if (said.empty() || said == "grpc") return Carrier::kTransport;
  if (said == "mpi") return Carrier::kMpi;
  return InvalidArgument("HEADRACE_COLLECTIVES is \"", said,
                         "\": it may be \"grpc\", which is what happens where "
                         "it is not set, or \"mpi\"");
}

namespace {

// TensorFlow's servers hang up on who asks often whether they are there.
ConnectOptions OptionsOfProcess() {
  ConnectOptions options;
  options.probes = !AllowsTensorflow();
  return options;
}

}  // namespace

StatusOr<std::unique_ptr<Server>> NewServer(const tensorflow::ServerDef& def) {
  if (def.protocol() != "grpc") {
    return NotFound(
        "No server factory registered for the given ServerDef: "
        "goo.gle/debugstr   \n",
        def.DebugString(),
        "\nThe available server factories are: [ GRPC_SERVER ]");
  }
  ServerOptions options;
  HR_ASSIGN_OR_RETURN(options.transport, TransportOfProcess());
  options.connect = OptionsOfProcess();
  options.allows_tensorflow = AllowsTensorflow();
  HR_ASSIGN_OR_RETURN(options.carrier, CarrierOfProcess());
  return Server::Make(def, options);
}

StatusOr<std::unique_ptr<MasterStub>> StubOf(const std::string& target) {
  HR_ASSIGN_OR_RETURN(auto* transport, TransportOfProcess());
  return MasterStub::Of(target, Dialling(*transport, OptionsOfProcess(),
                                         "a client", AllowsTensorflow()));
}

StatusOr<std::shared_ptr<RemoteContext>> ConnectEagerly(
    const RemoteOptions& options) {
  HR_ASSIGN_OR_RETURN(auto* transport, TransportOfProcess());
  const std::string own =
      DeviceName::OfTask(options.def.job_name(), options.def.task_index())
          .ToString();
  return RemoteContext::Connect(
      options,
      Dialling(*transport, OptionsOfProcess(), own, AllowsTensorflow()));
}

std::unique_ptr<Server> ListenForParts(RemoteOptions* options) {
  auto made = NewServer(options->def);
  options->no_worker = made.status();
  if (!made.ok()) return nullptr;
  std::unique_ptr<Server> server = *std::move(made);
  server->Start();
  options->def = server->def();
  options->worker = server->worker();
  options->resources = &DefaultResources();
  return server;
}

StatusOr<Generation> RegroupTask(Server& server, const GroupSearch& search) {
  HR_ASSIGN_OR_RETURN(const Carrier carrier, CarrierOfProcess());
  if (carrier == Carrier::kMpi) {
    return FailedPrecondition(
        "groups whose members change do not go by MPI, whose processes are "
        "the same for good: unset HEADRACE_COLLECTIVES");
  }
  return server.worker()->collectives()->Regroup(search);
}

Status ResetCluster(const std::string& target,
                    const std::vector<std::string>& containers,
                    const tensorflow::ConfigProto& config) {
  HR_ASSIGN_OR_RETURN(const auto stub, StubOf(target));
  tensorflow::ResetRequest request;
  for (const std::string& c : containers) request.add_container(c);
  *request.mutable_device_filters() = config.device_filters();
  tensorflow::ResetResponse response;
  return stub->Call("Reset", request, &response, OperationDeadline(config));
}

}  // namespace headrace::distributed
