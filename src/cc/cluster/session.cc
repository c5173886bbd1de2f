// A session of a server's target, over a graph that was made elsewhere.
#include <cmath>

#include "cc/compose.h"
#include "distributed/task/process.h"
#include "graph/import.h"
#include "headrace/cluster.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace headrace::tf::distribute {

using internal::Access;
using internal::Check;
using internal::Throw;

struct Session::State {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::unique_ptr<headrace::distributed::ClientSession> client;
  int64_t milliseconds = 0;  // of a run; 0: no limit
};

namespace {

// A tensor's name with its output, of one that the graph has.
std::string OutputNamed(const Graph& graph, const std::string& name) {
  const Edge edge = Check(graph.FindOutput(name));
  return absl::StrCat(edge.node->name(), ":", edge.index);
}

int64_t MillisecondsOf(double seconds) {
  // Longer than any run; a number of milliseconds that fits.
  constexpr double kMost = 1e9;
  if (!(seconds >= 0)) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("a session's operation_timeout is not negative, and is ",
                       seconds));
  }
  return static_cast<int64_t>(std::ceil(std::min(seconds, kMost) * 1e3));
}

// What the constructors share: all but the graph.
std::unique_ptr<headrace::distributed::ClientSession> ClientOf(
    const std::string& target, std::shared_ptr<Graph> graph,
    const SessionOptions& options) {
  tensorflow::ConfigProto config;
  config.set_operation_timeout_in_ms(MillisecondsOf(options.operation_timeout));
  for (const std::string& filter : options.device_filters) {
    config.add_device_filters(filter);
  }
  auto stub = Check(headrace::distributed::StubOf(target));
  return std::make_unique<headrace::distributed::ClientSession>(
      std::move(stub), std::move(graph), config, target);
}

}  // namespace

Session::Session(const std::string& target, const std::string& graph_def,
                 const SessionOptions& options)
    : state_(std::make_shared<State>()) {
  state_->milliseconds = MillisecondsOf(options.operation_timeout);
  Check(ImportGraphBytes(graph_def, {}, state_->graph.get(), nullptr));
  state_->client = ClientOf(target, state_->graph, options);
}

Session Session::OfMetaGraph(const std::string& target,
                             const std::string& meta_graph_def,
                             const SessionOptions& options) {
  tensorflow::MetaGraphDef read;
  if (!read.ParseFromString(meta_graph_def)) {
    Throw(ErrorCode::kInvalidArgument, "these bytes are no MetaGraphDef");
  }
  auto state = std::make_shared<State>();
  state->milliseconds = MillisecondsOf(options.operation_timeout);
  Check(ImportGraphDef(read.graph_def(), {}, state->graph.get(), nullptr));
  state->client = ClientOf(target, state->graph, options);
  return Session(std::move(state));
}

std::vector<Tensor> Session::Run(
    const Named& feeds, const std::vector<std::string>& fetches,
    const std::vector<std::string>& targets) const {
  const Graph& graph = *state_->graph;
  headrace::distributed::StepRequest request;
  for (const auto& [name, tensor] : feeds) {
    const Value& value = Access::ValueOf(tensor);
    if (value.is_symbolic()) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("the feed of ", name,
                         " is of a traced function, and has no elements"));
    }
    const Edge edge = Check(graph.FindOutput(name));
    const headrace::DType wanted = edge.node->output_type(edge.index);
    if (value.tensor().dtype() != wanted) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("the feed of ", name, " is ",
                         DTypeName(value.tensor().dtype()), ", and ",
                         DTypeName(wanted), " was expected"));
    }
    request.feeds.emplace_back(OutputNamed(graph, name), value.tensor());
  }
  for (const std::string& name : fetches) {
    request.fetches.push_back(OutputNamed(graph, name));
  }
  for (const std::string& name : targets) {
    if (graph.FindNode(name) == nullptr) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("the graph has no operation ", name));
    }
    request.targets.push_back(name);
  }
  request.options.set_timeout_in_ms(state_->milliseconds);
  std::vector<headrace::Tensor> fetched;
  Check(state_->client->Run(std::move(request), &fetched, nullptr));
  std::vector<Tensor> out;
  for (headrace::Tensor& t : fetched) {
    out.push_back(Access::Wrap(Value(std::move(t))));
  }
  return out;
}

std::vector<std::string> Session::Devices() const {
  const tensorflow::ListDevicesResponse found =
      Check(state_->client->ListDevices());
  std::vector<std::string> names;
  for (const auto& d : found.local_device()) names.push_back(d.name());
  for (const auto& d : found.remote_device()) names.push_back(d.name());
  return names;
}

void Session::Close() const {
  // The master may be gone, which closed it.
  state_->client->Close().IgnoreError();
}

}  // namespace headrace::tf::distribute
