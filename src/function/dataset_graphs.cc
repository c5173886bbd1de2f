// DatasetToGraph, DatasetFromGraph, DatasetFingerprint: datasets as graphs.
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "data/dataset_op.h"
#include "function/dataset_writer.h"
#include "graph/import.h"
#include "op/anonymous.h"
#include "op/registry.h"
#include "op/resource.h"
#include "ops/string/hash.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Upstream's number, in external_state_policy, for refusing functions with
// state; under the others they are written.
constexpr int64_t kFailOnState = 2;

Status WriteGraph(KernelContext& c, bool allow_state) {
  HR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetOf(c.input(0)));
  GraphDef graph;
  HR_RETURN_IF_ERROR(WriteDatasetGraph(
      *dataset, CallerOf(c.services()).library(),
      {allow_state, c.op().bool_attr("strip_device_assignment")}, &graph));
  c.set_output(0, Tensor::Scalar<std::string>(SortedBytes(graph)));
  return OkStatus();
}

Status ToGraph(KernelContext& c) {
  return WriteGraph(c, c.op().bool_attr("allow_stateful"));
}
Status ToGraphV2(KernelContext& c) {
  return WriteGraph(c,
                    c.op().int_attr("external_state_policy") != kFailOnState);
}

HR_OP(DatasetToGraph)
    .Input("input_dataset: variant")
    .Output("graph: string")
    // Upstream passes over this list: functions that call what it names are
    // refused all the same.
    .Attr("stateful_whitelist: list(string) >= 0 = []")
    .Attr("allow_stateful: bool = false")
    .Attr("strip_device_assignment: bool = false")
    .Doc("A graph that makes an equal dataset, as a serialised GraphDef.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<ToGraph>);

HR_OP(DatasetToGraphV2)
    .Input("input_dataset: variant")
    .Output("graph: string")
    .Attr("external_state_policy: int = 0")
    .Attr("strip_device_assignment: bool = false")
    .Doc("A graph that makes an equal dataset, as a serialised GraphDef.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<ToGraphV2>);

// Graphs of equal pipelines have the same: names that traces were given and
// what datasets are called are left out.
Status Fingerprint(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetOf(c.input(0)));
  GraphDef graph;
  HR_RETURN_IF_ERROR(WriteDatasetGraph(*dataset,
                                       CallerOf(c.services()).library(),
                                       {.allow_state = true}, &graph));
  int count = 0;
  RenameFunctions(&graph, [&](const std::string&) {
    return absl::StrCat("function_", count++);
  });
  std::map<std::string, std::string> functions;
  for (auto& f : *graph.mutable_library()->mutable_function()) {
    // What a trace was told of its function in Python.
    f.clear_attr();
    f.clear_arg_attr();
    GraphDef alone;
    *alone.mutable_library()->add_function() = f;
    functions[f.signature().name()] = SortedBytes(alone);
  }
  graph.clear_library();
  for (NodeDef& n : *graph.mutable_node()) n.mutable_attr()->erase("metadata");
  std::string bytes = SortedBytes(graph);
  for (const auto& [name, body] : functions) bytes += body;
  *c.out<uint64_t>(0) = Fingerprint64(bytes);
  return OkStatus();
}

HR_OP(DatasetFingerprint)
    .Input("input_dataset: variant")
    .Output("fingerprint: uint64")
    .Doc("A number that equal pipelines share.")
    .Shape(ScalarShape)
    .Cpu(Compute<Fingerprint>);

// Takes the nodes that return something out of the graph; what the last of
// them returns.
StatusOr<std::string> TakeReturned(GraphDef* def) {
  std::string returned;
  auto* nodes = def->mutable_node();
  const auto end =
      std::remove_if(nodes->begin(), nodes->end(), [&](const NodeDef& n) {
        if (n.op() != "_Retval" || n.input_size() == 0) return false;
        returned = n.input(0);
        return true;
      });
  nodes->erase(end, nodes->end());
  if (returned.empty()) return NotFound("FetchOutputs node : not found");
  return absl::StrContains(returned, ':') ? returned : returned + ":0";
}

// Variables without a name of their own have none: nobody else finds them.
void LeaveUnnamed(GraphDef* def) {
  for (NodeDef& n : *def->mutable_node()) {
    const OpDef* op = FindOp(n.op());
    if (op == nullptr || !op->Has(OpTrait::kUnnamedState)) continue;
    std::string& name = *(*n.mutable_attr())["shared_name"].mutable_s();
    if (name.empty()) name = std::string(kAnonymousName);
  }
}

Status FromGraph(KernelContext& c) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument("graph_def must be a scalar");
  }
  GraphDef def;
  // As upstream: what does not parse returns nothing.
  if (!def.ParseFromString(c.input(0).scalar<std::string>())) def.Clear();
  HR_ASSIGN_OR_RETURN(DatasetPtr made,
                      ReadDatasetGraph(std::move(def), c.services()));
  c.set_output(0, DatasetTensor(std::move(made)));
  return OkStatus();
}

HR_OP(DatasetFromGraph)
    .Input("graph_def: string")
    .Output("handle: variant")
    .Doc("The dataset that a graph returns.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<FromGraph>);

}  // namespace

StatusOr<DatasetPtr> ReadDatasetGraph(GraphDef def, RunServices services) {
  ImportOptions options;
  HR_ASSIGN_OR_RETURN(options.return_elements.emplace_back(),
                      TakeReturned(&def));
  // The process may have other functions of these names.
  RenameFunctions(&def, [](const std::string& old) {
    return FunctionLibrary::NewName(old);
  });
  LeaveUnnamed(&def);
  const auto graph = std::make_shared<Graph>();
  // Its functions are found process-wide: the dataset calls them when it is
  // walked, and holds those that it names.
  graph->is_body = true;
  ImportResults results;
  HR_RETURN_IF_ERROR(ImportGraphDef(def, options, graph.get(), &results));
  HR_ASSIGN_OR_RETURN(const auto plan,
                      Executable::Make(*graph, {}, results.returned, {},
                                       graph->library().get()));
  // What the graph's nodes name, the process need not have.
  ResourceManager resources;
  LibraryCaller caller(graph->library());
  services.resources = &resources;
  services.functions = &caller;
  std::vector<Tensor> made;
  HR_RETURN_IF_ERROR(plan->Run(services, {}, &made));
  return DatasetOf(made[0]);
}

}  // namespace headrace
