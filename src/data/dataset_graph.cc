#include "data/dataset_graph.h"

#include <map>

#include "absl/strings/match.h"
#include "data/elements.h"
#include "data/saved_run.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/versions.pb.h"

namespace headrace {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Windows of windows of windows: no deeper, so that forged ones end.
constexpr int kMostDepth = 8;
// TensorFlow 2.21's version of graphs.
constexpr int kProducer = 2474;
constexpr char kShardOp[] = "SnapshotDatasetReader";

class GraphWriter {
 public:
  GraphWriter() { graph_.mutable_versions()->set_producer(kProducer); }

  // The name of the node that makes the dataset.
  StatusOr<std::string> Add(const Dataset& dataset, int depth) {
    if (auto* shard = dynamic_cast<const ShardDataset*>(&dataset)) {
      return AddShard(*shard);
    }
    const auto* window = dynamic_cast<const ElementsDataset*>(&dataset);
    if (window == nullptr || depth > kMostDepth) {
      return Unimplemented("elements that hold a ", dataset.kind(),
                           "Dataset cannot be saved with an iterator");
    }
    NodeDef node;
    node.set_op("WindowOp");
    auto& attrs = *node.mutable_attr();
    for (const Element& e : window->elements()) {
      for (const Tensor& t : e) {
        HR_ASSIGN_OR_RETURN(std::string input, AddTensor(t, depth));
        node.add_input(std::move(input));
        attrs["Tinputs"].mutable_list()->add_type(TypeToProto(t.dtype()));
      }
    }
    // An empty window has the attribute, too.
    attrs["Tinputs"].mutable_list();
    PutSpec(dataset.spec(), &node);
    return Append(std::move(node));
  }
  const GraphDef& graph() const { return graph_; }

 private:
  StatusOr<std::string> AddTensor(const Tensor& t, int depth) {
    if (t.dtype() == DType::kVariant && t.rank() == 0) {
      auto inner =
          std::dynamic_pointer_cast<const Dataset>(t.scalar<Variant>().value());
      if (inner) return Add(*inner, depth + 1);
    }
    NodeDef node;
    node.set_op("Const");
    (*node.mutable_attr())["dtype"].set_type(TypeToProto(t.dtype()));
    HR_RETURN_IF_ERROR(
        TensorToProto(t, (*node.mutable_attr())["value"].mutable_tensor()));
    return Append(std::move(node));
  }
  // A shard of a saved dataset, by its folder.
  StatusOr<std::string> AddShard(const ShardDataset& shard) {
    NodeDef node;
    node.set_op(kShardOp);
    // The op's start index: a shard is read from its beginning.
    for (const Tensor& t : {Tensor::Scalar<std::string>(shard.folder()),
                            Tensor::Scalar<int64_t>(0)}) {
      HR_ASSIGN_OR_RETURN(std::string input, AddTensor(t, 0));
      node.add_input(std::move(input));
    }
    auto& attrs = *node.mutable_attr();
    attrs["compression"].set_s(shard.compression());
    // Upstream's version 2 of snapshot files, which shards are written in.
    attrs["version"].set_i(2);
    PutSpec(shard.spec(), &node);
    return Append(std::move(node));
  }
  static void PutSpec(const ElementSpec& spec, NodeDef* node) {
    auto& attrs = *node->mutable_attr();
    for (size_t i = 0; i < spec.types.size(); ++i) {
      attrs["output_types"].mutable_list()->add_type(
          TypeToProto(spec.types[i]));
      ShapeToProto(spec.shapes[i],
                   attrs["output_shapes"].mutable_list()->add_shape());
    }
  }
  std::string Append(NodeDef node) {
    // Names only have to be unique within the graph.
    node.set_name(absl::StrCat(node.op(), "/_", graph_.node_size()));
    std::string name = node.name();
    *graph_.add_node() = std::move(node);
    return name;
  }
  GraphDef graph_;
};

Status Damaged() { return DataLoss("a saved dataset is damaged"); }

StatusOr<ElementSpec> SpecOfNode(const NodeDef& node) {
  const auto types = node.attr().find("output_types");
  const auto shapes = node.attr().find("output_shapes");
  // The bytes come from a file: everything is checked before it is used.
  if (types == node.attr().end() || shapes == node.attr().end() ||
      types->second.list().type_size() == 0 ||
      types->second.list().type_size() != shapes->second.list().shape_size()) {
    return Damaged();
  }
  ElementSpec spec;
  for (int i = 0; i < types->second.list().type_size(); ++i) {
    const int type = types->second.list().type(i);
    if (!DTypeIsValid(type)) return Damaged();
    spec.types.push_back(static_cast<DType>(type));
    HR_ASSIGN_OR_RETURN(Shape shape,
                        ShapeFromProto(shapes->second.list().shape(i)));
    spec.shapes.push_back(std::move(shape));
  }
  return spec;
}

// The values of the nodes of a graph, in whose order each is behind its inputs.
class GraphReader {
 public:
  Status Read(const NodeDef& node) {
    if (node.op() == "Const") {
      const auto value = node.attr().find("value");
      if (value == node.attr().end()) return Damaged();
      HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(value->second.tensor()));
      values_[node.name()] = std::move(t);
      return OkStatus();
    }
    if (node.op() == "_Retval") return OkStatus();  // names the output
    if (node.op() == kShardOp) return ReadShard(node);
    if (node.op() != "WindowOp") {
      return Unimplemented("a saved iterator holds a dataset of op ", node.op(),
                           ", which cannot be restored");
    }
    HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOfNode(node));
    const size_t width = spec.types.size();
    std::vector<Element> elements;
    int inputs = 0;
    for (const std::string& input : node.input()) {
      if (absl::StartsWith(input, "^")) continue;
      const auto at = values_.find(input);
      // A node before its inputs is damage, as the writer puts inputs first.
      if (at == values_.end()) return Damaged();
      if (inputs % width == 0) elements.emplace_back();
      if (at->second.dtype() != spec.types[inputs++ % width]) return Damaged();
      elements.back().push_back(at->second);
    }
    if (inputs % width != 0) return Damaged();
    values_[node.name()] = DatasetTensor(MakeNested<const ElementsDataset>(
        std::move(spec), std::move(elements)));
    return OkStatus();
  }
  Status ReadShard(const NodeDef& node) {
    HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOfNode(node));
    const auto compression = node.attr().find("compression");
    if (node.input_size() < 1 || compression == node.attr().end()) {
      return Damaged();
    }
    const auto folder = values_.find(node.input(0));
    if (folder == values_.end() || folder->second.dtype() != DType::kString ||
        folder->second.num_elements() != 1) {
      return Damaged();
    }
    values_[node.name()] = DatasetTensor(MakeNested<const ShardDataset>(
        std::move(spec), folder->second.data<std::string>()[0],
        compression->second.s()));
    return OkStatus();
  }
  StatusOr<DatasetPtr> Result(const std::string& name) const {
    const auto at = values_.find(name);
    if (at == values_.end()) return Damaged();
    return DatasetOf(at->second);
  }

 private:
  std::map<std::string, Tensor> values_;
};

}  // namespace

StatusOr<DatasetGraph> GraphOfDataset(const Dataset& dataset) {
  GraphWriter writer;
  DatasetGraph result;
  HR_ASSIGN_OR_RETURN(result.output, writer.Add(dataset, 0));
  result.bytes = writer.graph().SerializeAsString();
  return result;
}

StatusOr<DatasetPtr> DatasetOfGraph(const DatasetGraph& graph) {
  GraphDef def;
  if (!def.ParseFromString(graph.bytes)) return Damaged();
  GraphReader reader;
  for (const NodeDef& node : def.node()) HR_RETURN_IF_ERROR(reader.Read(node));
  return reader.Result(graph.output);
}

}  // namespace headrace
