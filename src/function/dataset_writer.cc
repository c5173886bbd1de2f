#include "function/dataset_writer.h"

#include <map>
#include <set>

#include "base/hash_map.h"
#include "base/stack_room.h"
#include "data/anonymous_resource.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "graph/attr_proto.h"
#include "graph/called_names.h"
#include "graph/export.h"
#include "graph/graph.h"
#include "op/reach.h"
#include "op/registry.h"
#include "op/resource.h"
#include "op/table.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Calls `f` with each function's name among the attributes.
template <typename F>
Status EachFunction(const AttrMap& attrs, F&& f) {
  for (const auto& [key, value] : attrs) {
    if (const auto* one = std::get_if<FuncRef>(&value)) {
      HR_RETURN_IF_ERROR(f(one->name));
    } else if (const auto* all = std::get_if<std::vector<FuncRef>>(&value)) {
      for (const FuncRef& ref : *all) HR_RETURN_IF_ERROR(f(ref.name));
    }
  }
  return OkStatus();
}

// Whether a function with such a node has state of its own: not where the node
// makes a dataset, checks or prints something, or calls functions, which are
// looked at themselves.
bool KeepsState(const OpDef& op) {
  if (!op.is_stateful || op.Has(OpTrait::kAssertion) || op.Has(kPrintsOut)) {
    return false;
  }
  const bool dataset = op.outputs.size() == 1 &&
                       op.outputs[0].type == DType::kVariant &&
                       op.FindAttr("output_shapes") != nullptr;
  return !dataset && !CallsFunctions(op);
}

class DatasetWriter {
 public:
  DatasetWriter(const FunctionLibrary* library,
                const DatasetGraphOptions& options, GraphDef* graph)
      : library_(library), options_(options), graph_(*graph) {}

  // The name of the node that makes the dataset.
  StatusOr<std::string> Add(const Dataset& dataset) {
    if (const auto at = done_.find(&dataset); at != done_.end()) {
      return at->second;
    }
    HR_RETURN_IF_ERROR(CheckStackRoom("a graph of datasets"));
    const DatasetCall* call = dataset.call();
    if (call == nullptr) {
      return Unimplemented("a ", dataset.kind(),
                           "Dataset that no op made cannot be written as a "
                           "graph");
    }
    HR_RETURN_IF_ERROR(EachFunction(
        call->attrs, [&](const std::string& f) { return AddFunction(f); }));
    NodeDef node;
    node.set_op(call->op->name);
    for (const Tensor& t : call->inputs) {
      HR_ASSIGN_OR_RETURN(std::string input, AddInput(t));
      node.add_input(std::move(input));
    }
    for (const auto& [name, value] : call->attrs) {
      HR_RETURN_IF_ERROR(AttrToProto(value, &(*node.mutable_attr())[name]));
    }
    return done_[&dataset] = Append(std::move(node));
  }

  void Return(const std::string& name) {
    NodeDef& node = *graph_.add_node();
    node.set_op("_Retval");
    node.set_name("dataset");
    node.add_input(name);
    (*node.mutable_attr())["T"].set_type(TypeToProto(DType::kVariant));
    (*node.mutable_attr())["index"].set_i(0);
  }

 private:
  std::string Append(NodeDef node) {
    node.set_name(absl::StrCat(node.op(), "/_", graph_.node_size()));
    std::string name = node.name();
    *graph_.add_node() = std::move(node);
    return name;
  }

  StatusOr<std::string> AddInput(const Tensor& t) {
    if (t.dtype() == DType::kVariant && t.rank() == 0) {
      const auto dataset =
          std::dynamic_pointer_cast<const Dataset>(t.scalar<Variant>().value());
      if (dataset) return Add(*dataset);
    }
    if (t.dtype() == DType::kResource && t.rank() == 0) {
      return AddResource(t.scalar<ResourceHandle>());
    }
    NodeDef node;
    node.set_op("Const");
    (*node.mutable_attr())["dtype"].set_type(TypeToProto(t.dtype()));
    HR_RETURN_IF_ERROR(
        TensorToProto(t, (*node.mutable_attr())["value"].mutable_tensor()));
    return Append(std::move(node));
  }

  StatusOr<std::string> AddResource(const ResourceHandle& handle) {
    const auto made = resources_.find(handle.resource.get());
    if (handle.resource && made != resources_.end()) return made->second;
    StatusOr<std::string> name = MakeResource(handle);
    if (name.ok() && handle.resource) {
      resources_[handle.resource.get()] = *name;
    }
    return name;
  }
  StatusOr<std::string> MakeResource(const ResourceHandle& handle) {
    const Resource* resource = handle.resource.get();
    NodeDef node;
    if (resource == nullptr && handle.name.empty()) {
      // A handle of nothing, of whatever kind.
      node.set_op("DummySeedGenerator");
      return Append(std::move(node));
    }
    if (auto* remade = dynamic_cast<const RemadeResource*>(resource)) {
      for (const Tensor& t : remade->maker_inputs()) {
        HR_ASSIGN_OR_RETURN(std::string input, AddInput(t));
        node.add_input(std::move(input));
      }
      node.set_op(remade->maker());
      return Append(std::move(node));
    }
    if (auto* variable = dynamic_cast<const Variable*>(resource)) {
      return AddVariable(*variable, handle.name);
    }
    if (auto* table = dynamic_cast<const Table*>(resource)) {
      return AddTable(*table);
    }
    return Unimplemented("a dataset that holds a ",
                         resource ? resource->DebugString()
                                  : absl::StrCat("handle of ", handle.name),
                         " cannot be written as a graph");
  }

  // The handle that `maker` gives, when `filler` has run.
  std::string Filled(const std::string& maker, const std::string& filler) {
    NodeDef node;
    node.set_op("Identity");
    node.add_input(maker);
    node.add_input("^" + filler);
    (*node.mutable_attr())["T"].set_type(TypeToProto(DType::kResource));
    return Append(std::move(node));
  }
  // A variable of the graph's own with the value that it has now.
  StatusOr<std::string> AddVariable(const Variable& variable,
                                    const std::string& name) {
    HR_ASSIGN_OR_RETURN(const Tensor value, variable.Read(name));
    NodeDef node;
    node.set_op("VarHandleOp");
    auto& attrs = *node.mutable_attr();
    attrs["dtype"].set_type(TypeToProto(value.dtype()));
    ShapeToProto(variable.shape(), attrs["shape"].mutable_shape());
    const std::string handle = Append(std::move(node));
    HR_ASSIGN_OR_RETURN(std::string constant, AddInput(value));
    NodeDef assign;
    assign.set_op("AssignVariableOp");
    assign.add_input(handle);
    assign.add_input(std::move(constant));
    (*assign.mutable_attr())["dtype"].set_type(TypeToProto(value.dtype()));
    return Filled(handle, Append(std::move(assign)));
  }
  StatusOr<std::string> AddTable(const Table& table) {
    if (!table.value_shape().IsScalar() || !table.key_shape().IsScalar()) {
      return Unimplemented("a dataset that holds ", table.DebugString(),
                           " cannot be written as a graph");
    }
    Tensor keys, values;
    HR_RETURN_IF_ERROR(table.Export(&keys, &values));
    NodeDef node;
    node.set_op("HashTableV2");
    const auto put_types = [&](NodeDef* to, const char* key,
                               const char* value) {
      (*to->mutable_attr())[key].set_type(TypeToProto(table.key_dtype()));
      (*to->mutable_attr())[value].set_type(TypeToProto(table.value_dtype()));
    };
    put_types(&node, "key_dtype", "value_dtype");
    const std::string handle = Append(std::move(node));
    NodeDef import;
    import.set_op("LookupTableImportV2");
    import.add_input(handle);
    for (const Tensor& t : {keys, values}) {
      HR_ASSIGN_OR_RETURN(std::string input, AddInput(t));
      import.add_input(std::move(input));
    }
    put_types(&import, "Tin", "Tout");
    return Filled(handle, Append(std::move(import)));
  }

  // The function, and those that it calls.
  Status AddFunction(const std::string& name) {
    if (!functions_.insert(name).second) return OkStatus();
    HR_RETURN_IF_ERROR(CheckStackRoom("a graph of functions"));
    HR_ASSIGN_OR_RETURN(const FunctionPtr f, FindFunction(library_, name));
    const Graph& body = *f->body;
    for (int i = 0; i < body.num_nodes(); ++i) {
      const Node& node = *body.node(i);
      if (!options_.allow_state && KeepsState(node.def())) {
        return FailedPrecondition(
            "Failed to serialize the input pipeline graph: ", node.def().name,
            " is stateful.");
      }
      HR_RETURN_IF_ERROR(EachFunction(
          node.op().attrs(),
          [&](const std::string& called) { return AddFunction(called); }));
    }
    FunctionDef& def = *graph_.mutable_library()->add_function();
    HR_RETURN_IF_ERROR(ExportFunction(*f, &def));
    if (options_.strip_devices) {
      for (NodeDef& n : *def.mutable_node_def()) n.clear_device();
    }
    return OkStatus();
  }

  const FunctionLibrary* const library_;
  const DatasetGraphOptions options_;
  GraphDef& graph_;
  std::map<const Dataset*, std::string> done_;
  std::map<const Resource*, std::string> resources_;
  std::set<std::string> functions_;
};

}  // namespace

Status WriteDatasetGraph(const Dataset& dataset, const FunctionLibrary* library,
                         const DatasetGraphOptions& options, GraphDef* graph) {
  graph->Clear();
  graph->mutable_versions()->set_producer(kGraphVersion);
  graph->mutable_library();
  DatasetWriter writer(library, options, graph);
  HR_ASSIGN_OR_RETURN(const std::string name, writer.Add(dataset));
  writer.Return(name);
  return OkStatus();
}

std::string SortedBytes(const GraphDef& graph) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  graph.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

void RenameFunctions(
    GraphDef* graph,
    absl::FunctionRef<std::string(const std::string& old)> name) {
  std::map<std::string, FunctionDef*> functions;
  for (FunctionDef& f : *graph->mutable_library()->mutable_function()) {
    functions[f.signature().name()] = &f;
  }
  std::map<std::string, std::string> names;
  std::vector<FunctionDef*> open;
  const auto rename = [&](std::string* given) {
    const auto known = functions.find(*given);
    if (known == functions.end()) return;
    const auto [at, added] = names.emplace(*given, "");
    if (added) {
      at->second = name(*given);
      open.push_back(known->second);
    }
    *given = at->second;
  };
  // Those that functions call come behind those that nodes call.
  size_t next = 0;
  const auto rename_bodies = [&] {
    for (; next < open.size(); ++next) {
      FunctionDef& f = *open[next];
      rename(f.mutable_signature()->mutable_name());
      for (NodeDef& node : *f.mutable_node_def()) EachCalledName(&node, rename);
    }
  };
  for (NodeDef& node : *graph->mutable_node()) EachCalledName(&node, rename);
  rename_bodies();
  for (const auto& [old, f] : functions) {
    std::string called = old;
    rename(&called);  // of one that nobody calls, too
    rename_bodies();
  }
  for (auto& gradient : *graph->mutable_library()->mutable_gradient()) {
    rename(gradient.mutable_function_name());
    rename(gradient.mutable_gradient_func());
  }
}

}  // namespace headrace
