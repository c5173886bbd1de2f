#include "command/graph/upgraded.h"

#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "graph/attr_proto.h"
#include "graph/graph.h"
#include "op/registry.h"
#include "tensor/tensor_proto.h"

namespace headrace::command {
namespace {

using tensorflow::AttrValue;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

// From this version on an empty shape of a placeholder is that of a scalar.
constexpr int kFirstScalarPlaceholder = 24;

// One node on its way to others: it may be changed, and nodes be put before it.
class Rewriter {
 public:
  // `in_function`: outputs have the names that bodies have.
  Rewriter(NodeDef* node, Nodes* added, std::set<std::string>* names,
           bool in_function)
      : node_(node), added_(added), names_(names), in_function_(in_function) {}

  NodeDef& node() { return *node_; }
  AttrValue& attr(const std::string& name) {
    return (*node_->mutable_attr())[name];
  }
  void Drop(const std::string& attr) { node_->mutable_attr()->erase(attr); }
  // A node before this one, on the same device.
  NodeDef* Add(const std::string& suffix, const std::string& op) {
    NodeDef* n = added_->Add();
    std::string name = absl::StrCat(node_->name(), "/", suffix);
    for (int i = 1; !names_->insert(name).second; ++i) {
      name = absl::StrCat(node_->name(), "/", suffix, "_", i);
    }
    n->set_name(name);
    n->set_op(op);
    n->set_device(node_->device());
    return n;
  }
  // The input that stands for a node's only output, which is called `output`.
  std::string Ref(const NodeDef& n, const char* output) const {
    return in_function_ ? absl::StrCat(n.name(), ":", output, ":0") : n.name();
  }
  Status AddConstant(const std::string& suffix, const Tensor& value,
                     std::string* input) {
    NodeDef* n = Add(suffix, "Const");
    (*n->mutable_attr())["dtype"].set_type(
        static_cast<tensorflow::DataType>(value.dtype()));
    HR_RETURN_IF_ERROR(
        TensorToProto(value, (*n->mutable_attr())["value"].mutable_tensor()));
    *input = Ref(*n, "output");
    return OkStatus();
  }
  // An op of inputs of one dtype "T" and one output.
  std::string AddOp(const std::string& suffix, const std::string& op,
                    const char* output, tensorflow::DataType dtype,
                    const std::vector<std::string>& inputs) {
    NodeDef* n = Add(suffix, op);
    for (const std::string& input : inputs) n->add_input(input);
    (*n->mutable_attr())["T"].set_type(dtype);
    return Ref(*n, output);
  }
  // Makes an input the `place`-th: control inputs stay last.
  void InsertInput(int place, const std::string& input) {
    node_->add_input(input);
    for (int i = node_->input_size() - 1; i > place; --i) {
      node_->mutable_input()->SwapElements(i, i - 1);
    }
  }

 private:
  NodeDef* const node_;
  Nodes* const added_;
  std::set<std::string>* const names_;
  const bool in_function_;
};

using Rewrite = std::function<Status(Rewriter&)>;

Status CheckInputs(Rewriter& r, int count) {
  int inputs = 0;
  for (const std::string& input : r.node().input()) inputs += input[0] != '^';
  if (inputs == count) return OkStatus();
  return InvalidArgument("node ", r.node().name(), " (", r.node().op(),
                         ") has ", inputs, " inputs, expected ", count);
}

// The same under another name.
Rewrite Renamed(const char* op) {
  return [op](Rewriter& r) {
    r.node().set_op(op);
    return OkStatus();
  };
}

Status UpgradeTopK(Rewriter& r) {
  HR_RETURN_IF_ERROR(CheckInputs(r, 1));
  std::string k;
  HR_RETURN_IF_ERROR(r.AddConstant(
      "k", Tensor::Scalar<int32_t>(static_cast<int32_t>(r.attr("k").i())), &k));
  r.InsertInput(1, k);
  r.Drop("k");
  r.node().set_op("TopKV2");
  return OkStatus();
}

Status UpgradePoisson(Rewriter& r) {
  r.attr("R").set_type(r.attr("dtype").type());
  r.node().set_op("RandomPoissonV2");
  return OkStatus();
}

Status UpgradeQuantize(Rewriter& r) {
  HR_RETURN_IF_ERROR(CheckInputs(r, 1));
  if (r.attr("T").type() != tensorflow::DT_FLOAT) {
    return Unimplemented("node ", r.node().name(),
                         " (QuantizeAndDequantize) of other than float");
  }
  int place = 1;
  for (const char* name : {"input_min", "input_max"}) {
    std::string input;
    HR_RETURN_IF_ERROR(
        r.AddConstant(name, Tensor::Scalar<float>(r.attr(name).f()), &input));
    r.InsertInput(place++, input);
    r.Drop(name);
  }
  r.node().set_op("QuantizeAndDequantizeV2");
  return OkStatus();
}

// Takes a size where there was a tensor of that size.
Rewrite BySize(const char* op, int place) {
  return [op, place](Rewriter& r) -> Status {
    HR_RETURN_IF_ERROR(CheckInputs(r, 3));
    NodeDef* shape = r.Add("shape", "Shape");
    shape->add_input(r.node().input(place));
    (*shape->mutable_attr())["T"].set_type(r.attr("T").type());
    (*shape->mutable_attr())["out_type"].set_type(tensorflow::DT_INT32);
    r.node().set_input(place, r.Ref(*shape, "output"));
    r.node().set_op(op);
    return OkStatus();
  };
}

// (t - mean) * (1 / sqrt(variance + epsilon)) [* gamma] + beta, multiplied out.
Status UpgradeBatchNorm(Rewriter& r) {
  HR_RETURN_IF_ERROR(CheckInputs(r, 5));
  const tensorflow::DataType dtype = r.attr("T").type();
  if (dtype != tensorflow::DT_FLOAT) {
    return Unimplemented("node ", r.node().name(),
                         " (BatchNormWithGlobalNormalization) of other than "
                         "float");
  }
  const std::vector<std::string> in(r.node().input().begin(),
                                    r.node().input().begin() + 5);
  std::string epsilon;
  HR_RETURN_IF_ERROR(r.AddConstant(
      "epsilon", Tensor::Scalar<float>(r.attr("variance_epsilon").f()),
      &epsilon));
  const auto op = [&](const char* suffix, const char* name, const char* output,
                      std::vector<std::string> inputs) {
    return r.AddOp(suffix, name, output, dtype, inputs);
  };
  std::string scale = op("rsqrt", "Rsqrt", "y",
                         {op("variance", "AddV2", "z", {in[2], epsilon})});
  if (r.attr("scale_after_normalization").b()) {
    scale = op("scale", "Mul", "z", {scale, in[4]});
  }
  const std::string scaled = op("scaled", "Mul", "z", {in[0], scale});
  const std::string mean = op("mean", "Mul", "z", {in[1], scale});
  const std::string offset = op("offset", "Sub", "z", {in[3], mean});
  std::vector<std::string> controls(r.node().input().begin() + 5,
                                    r.node().input().end());
  r.node().clear_input();
  r.node().add_input(scaled);
  r.node().add_input(offset);
  for (std::string& c : controls) r.node().add_input(std::move(c));
  r.node().set_op("AddV2");
  r.Drop("variance_epsilon");
  r.Drop("scale_after_normalization");
  return OkStatus();
}

// What stands for ops that graphs of today may not use.
const std::map<std::string, Rewrite>& Rewrites() {
  static const auto* rewrites = new std::map<std::string, Rewrite>{
      {"PlaceholderV2", Renamed("Placeholder")},
      {"BatchMatrixBandPart", Renamed("MatrixBandPart")},
      {"BatchMatrixDiag", Renamed("MatrixDiag")},
      {"BatchMatrixDiagPart", Renamed("MatrixDiagPart")},
      {"BatchMatrixSetDiag", Renamed("MatrixSetDiag")},
      {"BatchMatrixInverse", Renamed("MatrixInverse")},
      {"BatchMatrixDeterminant", Renamed("MatrixDeterminant")},
      {"BatchMatrixSolve", Renamed("MatrixSolve")},
      {"BatchMatrixSolveLs", Renamed("MatrixSolveLs")},
      {"BatchMatrixTriangularSolve", Renamed("MatrixTriangularSolve")},
      {"BatchCholesky", Renamed("Cholesky")},
      {"BatchCholeskyGrad", Renamed("CholeskyGrad")},
      {"BatchSelfAdjointEigV2", Renamed("SelfAdjointEigV2")},
      {"BatchSvd", Renamed("Svd")},
      {"TopK", UpgradeTopK},
      {"RandomPoisson", UpgradePoisson},
      {"QuantizeAndDequantize", UpgradeQuantize},
      {"Conv3DBackpropInput", BySize("Conv3DBackpropInputV2", 0)},
      {"Conv3DBackpropFilter", BySize("Conv3DBackpropFilterV2", 1)},
      {"BatchNormWithGlobalNormalization", UpgradeBatchNorm},
  };
  return *rewrites;
}

class GraphUpgrader {
 public:
  explicit GraphUpgrader(GraphDef* graph) : graph_(graph) {
    for (const auto& f : graph->library().function()) {
      functions_.insert(f.signature().name());
    }
  }

  StatusOr<Upgrade> Run() {
    HR_RETURN_IF_ERROR(UpgradeNodes(graph_->mutable_node(), nullptr));
    for (auto& f : *graph_->mutable_library()->mutable_function()) {
      HR_RETURN_IF_ERROR(UpgradeNodes(f.mutable_node_def(), &f));
    }
    if (graph_->library().ByteSizeLong() == 0) graph_->clear_library();
    if (!refused_.empty()) {
      return Unimplemented("ops without a replacement: ",
                           absl::StrJoin(refused_, ", "));
    }
    auto* versions = graph_->mutable_versions();
    versions->set_producer(std::max(kGraphVersion, versions->producer()));
    versions->set_min_consumer(
        std::max(kGraphMinConsumer, versions->min_consumer()));
    return upgrade_;
  }

 private:
  Status UpgradeNodes(Nodes* nodes, tensorflow::FunctionDef* function) {
    std::set<std::string> names;
    for (const NodeDef& n : *nodes) names.insert(n.name());
    if (function) {
      for (const auto& arg : function->signature().input_arg()) {
        names.insert(arg.name());
      }
    }
    Nodes added;
    std::map<std::string, std::string> replaced;  // name, the op it had
    for (NodeDef& n : *nodes) {
      const std::string old = n.op();
      HR_RETURN_IF_ERROR(UpgradeNode(&n, &added, &names, function != nullptr));
      if (n.op() != old) replaced[n.name()] = old;
    }
    for (NodeDef& n : added) *nodes->Add() = std::move(n);
    if (function) RenameOutputs(replaced, function);
    for (NodeDef& n : *nodes) FillDefaults(&n);
    return OkStatus();
  }

  Status UpgradeNode(NodeDef* n, Nodes* added, std::set<std::string>* names,
                     bool in_function) {
    const OpDef* op = FindOp(n->op());
    if (op != nullptr && op->Is(OpRole::kPlaceholder)) OpenShape(n);
    auto rewrite = Rewrites().find(n->op());
    const bool deprecated = op != nullptr && op->deprecation.version > 0;
    const bool unknown = op == nullptr && !functions_.contains(n->op());
    if (rewrite == Rewrites().end()) {
      if (unknown || deprecated) refused_.insert(Refusal(*n, op));
      return OkStatus();
    }
    Rewriter rewriter(n, added, names, in_function);
    HR_RETURN_IF_ERROR(rewrite->second(rewriter));
    ++upgrade_.replaced;
    return OkStatus();
  }

  static std::string Refusal(const NodeDef& n, const OpDef* op) {
    if (op == nullptr) return absl::StrCat(n.op(), " (unknown)");
    return absl::StrCat(n.op(), " (", op->deprecation.explanation, ")");
  }

  void OpenShape(NodeDef* n) const {
    auto shape = n->mutable_attr()->find("shape");
    if (n->op() == "PlaceholderV2" || n->input_size() > 0 ||
        graph_->versions().producer() >= kFirstScalarPlaceholder ||
        shape == n->mutable_attr()->end() ||
        shape->second.shape().dim_size() > 0) {
      return;
    }
    shape->second.mutable_shape()->set_unknown_rank(true);
  }

  // Bodies name the outputs that they read: those of the replacement have its
  // names, in the same order.
  static void RenameOutputs(const std::map<std::string, std::string>& replaced,
                            tensorflow::FunctionDef* f) {
    std::map<std::string, const OpDef*> now;
    for (const NodeDef& n : f->node_def()) {
      if (replaced.contains(n.name())) now[n.name()] = FindOp(n.op());
    }
    const auto rename = [&](std::string* input) {
      const size_t first = input->find(':');
      if (first == std::string::npos) return;
      auto it = now.find(input->substr(0, first));
      if (it == now.end() || it->second == nullptr) return;
      const OpDef* old = FindOp(replaced.at(it->first));
      const size_t last = input->rfind(':');
      if (old == nullptr || last <= first) return;
      const std::string output = input->substr(first + 1, last - first - 1);
      for (size_t i = 0; i < old->outputs.size(); ++i) {
        if (old->outputs[i].name != output || i >= it->second->outputs.size()) {
          continue;
        }
        input->replace(first + 1, output.size(), it->second->outputs[i].name);
        return;
      }
    };
    for (NodeDef& n : *f->mutable_node_def()) {
      for (std::string& input : *n.mutable_input()) rename(&input);
    }
    for (auto& [name, result] : *f->mutable_ret()) rename(&result);
  }

  void FillDefaults(NodeDef* n) {
    const OpDef* op = FindOp(n->op());
    if (op == nullptr) return;
    for (const AttrDef& attr : op->attrs) {
      if (!attr.has_default || n->attr().contains(attr.name)) continue;
      AttrValue value;
      if (!AttrToProto(attr.default_value, &value).ok()) continue;
      (*n->mutable_attr())[attr.name] = std::move(value);
      ++upgrade_.filled;
    }
  }

  GraphDef* const graph_;
  std::set<std::string> functions_;
  std::set<std::string> refused_;
  Upgrade upgrade_;
};

}  // namespace

StatusOr<Upgrade> UpgradeGraph(GraphDef* graph) {
  return GraphUpgrader(graph).Run();
}

}  // namespace headrace::command
