#include "c/graph.h"

#include "c/buffer.h"
#include "c/status.h"
#include "c/tensor.h"
#include "formats/version_check.h"
#include "graph/attr_proto.h"
#include "graph/export.h"
#include "graph/function.h"
#include "op/registry.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/versions.pb.h"

using headrace::MutexLock;

TF_Graph::TF_Graph()
    : graph(std::make_shared<headrace::Graph>()),
      builder(graph, headrace::GraphBuilder::Kind::kPlain) {}

TF_Operation* TF_Graph::OperationOf(headrace::Node* node) {
  while (operations_.size() <= static_cast<size_t>(node->id())) {
    const int id = static_cast<int>(operations_.size());
    operations_.push_back({this, graph->node(id)});
  }
  return &operations_[node->id()];
}

const TF_Graph::Users& TF_Graph::UsersOf(const headrace::Node* node) {
  if (users_at_change_ != changes) {
    users_.clear();
    users_of_nodes_ = 0;
    users_at_change_ = changes;
  }
  users_.resize(graph->num_nodes());
  // Nodes that came since. Loops make nodes read later ones, but say so.
  for (; users_of_nodes_ < graph->num_nodes(); ++users_of_nodes_) {
    headrace::Node* user = graph->node(users_of_nodes_);
    for (int i = 0; i < user->num_inputs(); ++i) {
      users_[user->input(i).node->id()].readers.push_back(
          {OperationOf(user), i});
    }
    for (const headrace::Node* c : user->control_inputs()) {
      users_[c->id()].waiting.push_back(OperationOf(user));
    }
  }
  return users_[node->id()];
}

void TF_Graph::AddSession() {
  MutexLock lock(mutex);
  ++sessions_;
}

void TF_Graph::RemoveSession() {
  bool last;
  {
    MutexLock lock(mutex);
    last = --sessions_ == 0 && deleted_;
  }
  if (last) delete this;
}

void TF_Graph::Delete() {
  bool last;
  {
    MutexLock lock(mutex);
    deleted_ = true;
    last = sessions_ == 0;
  }
  if (last) delete this;
}

namespace headrace::capi {

StatusOr<Node*> NodeOf(const TF_Graph* graph, const TF_Operation* oper) {
  HR_RETURN_IF_ERROR(NotNull(oper, "an operation"));
  if (oper->graph != graph) {
    return InvalidArgument("Operation '", oper->node->name(),
                           "' is not of this graph");
  }
  return oper->node;
}

StatusOr<Edge> EdgeOf(const TF_Graph* graph, TF_Output output) {
  HR_ASSIGN_OR_RETURN(Node * node, NodeOf(graph, output.oper));
  if (output.index < 0 || output.index >= node->num_outputs()) {
    return OutOfRange("Node '", node->name(), "' (type: '", node->def().name,
                      "', num of outputs: ", node->num_outputs(),
                      ") does not have output ", output.index);
  }
  return Edge{node, output.index};
}

Status CheckList(const void* list, int count, StringView what) {
  if (count < 0) {
    return InvalidArgument("the number of ", what, " is ", count);
  }
  if (count == 0) return OkStatus();
  return NotNull(list, absl::StrCat("the list of ", what));
}

StatusOr<std::vector<Edge>> EdgesOf(const TF_Graph* graph,
                                    const TF_Output* outputs, int count) {
  HR_RETURN_IF_ERROR(CheckList(outputs, count, "outputs"));
  std::vector<Edge> edges;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(graph, outputs[i]));
    edges.push_back(e);
  }
  return edges;
}

StatusOr<std::vector<Node*>> NodesOf(const TF_Graph* graph,
                                     const TF_Operation* const* opers,
                                     int count) {
  HR_RETURN_IF_ERROR(CheckList(opers, count, "operations"));
  std::vector<Node*> nodes;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(Node * n, NodeOf(graph, opers[i]));
    nodes.push_back(n);
  }
  return nodes;
}

namespace {

Status SetTensorShape(TF_Graph* g, TF_Output output, const int64_t* dims,
                      int num_dims) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(const Node* node, NodeOf(g, output.oper));
  if (output.index < 0 || output.index >= node->num_outputs()) {
    return InvalidArgument("output_port '", output.index,
                           "' is out of range, node '", node->name(), "' has ",
                           node->num_outputs(), " outputs");
  }
  HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(g, output));
  HR_ASSIGN_OR_RETURN(Shape given, ToShape(dims, num_dims, true));
  HR_ASSIGN_OR_RETURN(Shape merged,
                      MergeShapes(e.node->output_shape(e.index), given));
  e.node->set_output_shape(e.index, std::move(merged));
  return OkStatus();
}

StatusOr<Shape> ShapeOf(TF_Graph* g, TF_Output output) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(g, output));
  return e.node->output_shape(e.index);
}

// As ExportFunction says it, without the body.
Status OpOrFunctionDef(TF_Graph* g, const char* name, tensorflow::OpDef* def) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  HR_RETURN_IF_ERROR(NotNull(name, "op_name"));
  if (FunctionPtr f = g->graph->library()->Find(name)) {
    tensorflow::FunctionDef function;
    HR_RETURN_IF_ERROR(ExportFunction(*f, &function));
    *def = std::move(*function.mutable_signature());
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(const OpDef* op, LookUpOp(name));
  return OpDefToProto(*op, def);
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::OkStatus;
using headrace::Status;

const char* TF_Version() { return headrace::kTensorFlowVersion; }

TF_Graph* TF_NewGraph() {
  return capi::OrElse<TF_Graph*>(nullptr, [] { return new TF_Graph; });
}

void TF_DeleteGraph(TF_Graph* g) {
  // Parts of a loop go with it.
  if (g && !g->is_part) g->Delete();
}

void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output,
                            const int64_t* dims, const int num_dims,
                            TF_Status* status) {
  capi::Into(status, [&] {
    return capi::SetTensorShape(graph, output, dims, num_dims);
  });
}

int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output,
                             TF_Status* status) {
  int rank = -1;
  capi::Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(headrace::Shape shape, capi::ShapeOf(graph, output));
    rank = shape.rank();
    return OkStatus();
  });
  return rank;
}

void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims,
                            int num_dims, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(headrace::Shape shape, capi::ShapeOf(graph, output));
    if (num_dims != shape.rank()) {
      return headrace::InvalidArgument("Expected rank is ", num_dims,
                                       " but actual rank is ", shape.rank());
    }
    // Nothing to copy.
    if (num_dims <= 0) return OkStatus();
    HR_RETURN_IF_ERROR(capi::NotNull(dims, "dims"));
    std::copy(shape.dims().begin(), shape.dims().end(), dims);
    return OkStatus();
  });
}

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name) {
  if (graph == nullptr || oper_name == nullptr) return nullptr;
  return capi::OrElse<TF_Operation*>(nullptr, [&] {
    MutexLock lock(graph->mutex);
    headrace::Node* node = graph->graph->FindNode(oper_name);
    return node ? graph->OperationOf(node) : nullptr;
  });
}

TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos) {
  if (graph == nullptr || pos == nullptr) return nullptr;
  return capi::OrElse<TF_Operation*>(nullptr, [&]() -> TF_Operation* {
    MutexLock lock(graph->mutex);
    if (*pos >= static_cast<size_t>(graph->graph->num_nodes())) return nullptr;
    return graph->OperationOf(graph->graph->node(static_cast<int>((*pos)++)));
  });
}

void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def,
                        TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(graph, "graph"));
    tensorflow::GraphDef def;
    {
      MutexLock lock(graph->mutex);
      HR_RETURN_IF_ERROR(headrace::ExportGraph(*graph->graph, {}, &def));
    }
    return capi::SetBuffer(output_graph_def, def);
  });
}

void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name,
                      TF_Buffer* output_op_def, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    tensorflow::OpDef def;
    HR_RETURN_IF_ERROR(capi::OpOrFunctionDef(graph, op_name, &def));
    return capi::SetBuffer(output_op_def, def);
  });
}

void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def,
                      TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(graph, "graph"));
    tensorflow::VersionDef def;
    {
      MutexLock lock(graph->mutex);
      headrace::ExportVersions(graph->graph->versions(), &def);
    }
    return capi::SetBuffer(output_version_def, def);
  });
}
