#include "simulator/sync_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/import.h"

namespace headrace::simulator {
namespace {

using distributed::Devices;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr int64_t kFloat = 4;

std::string ServerDevice(int i) {
  return absl::StrCat("/job:ps/replica:0/task:", i, "/device:CPU:0");
}
std::string WorkerDevice(int i) {
  return absl::StrCat("/job:worker/replica:0/task:", i, "/device:CPU:0");
}

class SyncGraph {
 public:
  explicit SyncGraph(const SyncGraphOptions& o) : o_(o) {}

  // The target.
  std::string AddWorker(int worker) {
    const std::string own = WorkerDevice(worker);
    Variable("local_step", own, tensorflow::DT_INT64, 0);
    Read("local_step/read", own, "local_step", tensorflow::DT_INT64);
    for (int s = 0; s < o_.servers; ++s) {
      AddServed(s);
      Read(Named("read", s), ServerDevice(s), Named("variable", s),
           tensorflow::DT_FLOAT);
      Typed(Named("use", s), "Identity", own, {Named("read", s)}, "T",
            tensorflow::DT_FLOAT);
    }
    NodeDef* forward = Add("forward", "NoOp", own, {});
    for (int s = 0; s < o_.servers; ++s) {
      forward->add_input(absl::StrCat("^", Named("use", s)));
    }
    AddQueue();
    NodeDef* token = Add("token", "QueueDequeueV2", ServerDevice(0), {"queue"});
    (*token->mutable_attr())["component_types"].mutable_list()->add_type(
        tensorflow::DT_INT64);
    for (int s = 0; s < o_.servers; ++s) {
      Typed(Named("gradient", s), "Identity", own,
            {Named("use", s), "^forward"}, "T", tensorflow::DT_FLOAT);
      Typed(Named("apply", s), "ResourceAccumulatorApplyGradient",
            ServerDevice(s),
            {Named("accumulator", s), "local_step/read", Named("gradient", s)},
            "dtype", tensorflow::DT_FLOAT);
      token->add_input(absl::StrCat("^", Named("apply", s)));
    }
    Typed("step", "AssignVariableOp", own, {"local_step", "token"}, "dtype",
          tensorflow::DT_INT64);
    return "step";
  }

  std::string AddChief() {
    const std::string first = ServerDevice(0);
    Variable("global_step", first, tensorflow::DT_INT64, 0);
    Constant("one", first, tensorflow::DT_INT64)->add_int64_val(1);
    NodeDef* count =
        Typed("count", "AssignAddVariableOp", first, {"global_step", "one"},
              "dtype", tensorflow::DT_INT64);
    for (int s = 0; s < o_.servers; ++s) {
      const std::string there = ServerDevice(s);
      AddServed(s);
      Constant(Named("wanted", s), there, tensorflow::DT_INT32)
          ->add_int_val(o_.wanted);
      Constant(Named("rate", s), there, tensorflow::DT_FLOAT)
          ->add_float_val(0.1f);
      Typed(Named("take", s), "ResourceAccumulatorTakeGradient", there,
            {Named("accumulator", s), Named("wanted", s)}, "dtype",
            tensorflow::DT_FLOAT);
      Typed(Named("update", s), "ResourceApplyGradientDescent", there,
            {Named("variable", s), Named("rate", s), Named("take", s)}, "T",
            tensorflow::DT_FLOAT);
      count->add_input(absl::StrCat("^", Named("update", s)));
    }
    Read("now", first, "global_step", tensorflow::DT_INT64)
        ->add_input("^count");
    auto* dims = Constant("workers", first, tensorflow::DT_INT32);
    dims->mutable_tensor_shape()->add_dim()->set_size(1);
    dims->add_int_val(o_.workers);
    Typed("tokens", "Fill", first, {"workers", "now"}, "T",
          tensorflow::DT_INT64);
    AddQueue();
    NodeDef* give =
        Add("give", "QueueEnqueueManyV2", first, {"queue", "tokens"});
    (*give->mutable_attr())["Tcomponents"].mutable_list()->add_type(
        tensorflow::DT_INT64);
    return "give";
  }

  const GraphDef& def() const { return def_; }

 private:
  static std::string Named(const char* what, int server) {
    return absl::StrCat(what, "_", server);
  }
  NodeDef* Add(const std::string& name, const char* op,
               const std::string& device,
               const std::vector<std::string>& inputs) {
    NodeDef* node = def_.add_node();
    node->set_name(name);
    node->set_op(op);
    node->set_device(device);
    for (const std::string& input : inputs) node->add_input(input);
    return node;
  }
  NodeDef* Typed(const std::string& name, const char* op,
                 const std::string& device,
                 const std::vector<std::string>& inputs, const char* attr,
                 tensorflow::DataType type) {
    NodeDef* node = Add(name, op, device, inputs);
    (*node->mutable_attr())[attr].set_type(type);
    return node;
  }
  void Shaped(NodeDef* node, int64_t bytes) {
    auto& attrs = *node->mutable_attr();
    attrs["shared_name"].set_s(node->name());
    auto* shape = attrs["shape"].mutable_shape();
    if (bytes > 0) shape->add_dim()->set_size(bytes / kFloat);
  }
  void Variable(const std::string& name, const std::string& device,
                tensorflow::DataType type, int64_t bytes) {
    Shaped(Typed(name, "VarHandleOp", device, {}, "dtype", type), bytes);
  }
  NodeDef* Read(const std::string& name, const std::string& device,
                const std::string& of, tensorflow::DataType type) {
    return Typed(name, "ReadVariableOp", device, {of}, "dtype", type);
  }
  tensorflow::TensorProto* Constant(const std::string& name,
                                    const std::string& device,
                                    tensorflow::DataType type) {
    NodeDef* node = Typed(name, "Const", device, {}, "dtype", type);
    auto* value = (*node->mutable_attr())["value"].mutable_tensor();
    value->set_dtype(type);
    return value;
  }
  void AddServed(int s) {
    const int64_t bytes = ShareOf(o_, s);
    Variable(Named("variable", s), ServerDevice(s), tensorflow::DT_FLOAT,
             bytes);
    Shaped(Typed(Named("accumulator", s), "ResourceConditionalAccumulator",
                 ServerDevice(s), {}, "dtype", tensorflow::DT_FLOAT),
           bytes);
  }
  void AddQueue() {
    NodeDef* queue = Add("queue", "FIFOQueueV2", ServerDevice(0), {});
    auto& attrs = *queue->mutable_attr();
    attrs["component_types"].mutable_list()->add_type(tensorflow::DT_INT64);
    attrs["shapes"].mutable_list()->add_shape();
    attrs["shared_name"].set_s("queue");
  }

  const SyncGraphOptions o_;
  GraphDef def_;
};

Status AddDevice(const std::string& name, Devices* devices) {
  distributed::ClusterDevice device;
  if (!DeviceName::Parse(name, &device.name)) {
    return Internal("a device ", name);
  }
  device.incarnation = devices->all.size() + 1;
  devices->all.push_back(std::move(device));
  return OkStatus();
}

}  // namespace

int64_t ShareOf(const SyncGraphOptions& o, int server) {
  const int64_t count = o.bytes / kFloat;
  return (count * (server + 1) / o.servers - count * server / o.servers) *
         kFloat;
}

StatusOr<CutStep> CutSyncStep(const SyncGraphOptions& options, int worker) {
  SyncGraph made(options);
  const std::string target =
      worker < 0 ? made.AddChief() : made.AddWorker(worker);
  const std::string own = WorkerDevice(std::max(worker, 0));
  Devices devices;
  HR_RETURN_IF_ERROR(AddDevice(own, &devices));
  for (int s = 0; s < options.servers; ++s) {
    HR_RETURN_IF_ERROR(AddDevice(ServerDevice(s), &devices));
  }
  devices.standard = devices.all[0].name;
  Graph graph;
  HR_RETURN_IF_ERROR(
      ImportGraphDef(made.def(), ImportOptions(), &graph, nullptr));
  CutStep cut;
  cut.task = devices.standard.Task().ToString();
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = *graph.node(i);
    if (node.num_outputs() == 0) continue;
    const Shape& shape = node.output_shape(0);
    const size_t size = DTypeSize(node.output_type(0));
    if (!shape.fully_known() || size == 0) continue;
    cut.bytes[node.name()] = shape.num_elements() * static_cast<int64_t>(size);
  }
  HR_ASSIGN_OR_RETURN(cut.parts,
                      Partition({.graph = &graph,
                                 .def = &made.def(),
                                 .targets = {graph.FindNode(target)}},
                                devices));
  return cut;
}

}  // namespace headrace::simulator
