// Changes of operations that are there already, what is behind handles, and
// values that follow from the graph alone.
#include <algorithm>

#include "base/hash_map.h"
#include "c/buffer.h"
#include "c/graph.h"
#include "c/status.h"
#include "c/tensor.h"
#include "graph/attr_proto.h"
#include "graph/builder.h"
#include "op/registry.h"
#include "op/resolved_op.h"
#include "op/resource.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/cpp_shape_inference.pb.h"

namespace headrace::capi {
namespace {

using HandleProto = tensorflow::core::CppShapeInferenceResult_HandleData;

Status UpdateEdge(TF_Graph* g, TF_Output source, TF_Input to) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(g, source));
  HR_ASSIGN_OR_RETURN(Node * n, NodeOf(g, to.oper));
  if (to.index < 0 || to.index >= n->num_inputs()) {
    return OutOfRange("Node '", n->name(), "' (type: '", n->def().name,
                      "', num of inputs: ", n->num_inputs(),
                      ") does not have input ", to.index);
  }
  const DType wanted = n->op().input_types()[to.index];
  const DType given = e.node->output_type(e.index);
  if (wanted != given && wanted != BaseType(given)) {
    return InvalidArgument("Cannot set input ", to.index, " of ", n->name(),
                           " from a ", DTypeName(given), " tensor: it is a ",
                           DTypeName(wanted));
  }
  const Edge& was = n->input(to.index);
  const Shape& shape = e.node->output_shape(e.index);
  const Shape& old_shape = was.node->output_shape(was.index);
  if (!shape.CompatibleWith(old_shape)) {
    return InvalidArgument("Cannot update edge, incompatible shapes: ", shape,
                           " and ", old_shape, ".");
  }
  n->SetInput(to.index, e);
  g->NoteChange(n);
  return OkStatus();
}

// InvalidArgument where what reads the node would take bytes of another type
// than `op` makes: kernels do not ask again.
Status CheckReaders(TF_Graph* g, const Node& n, const ResolvedOp& op)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(g->mutex) {
  for (const TF_Input& in : g->UsersOf(&n).readers) {
    const Node& reader = *in.oper->node;
    const int output = reader.input(in.index).index;
    const DType have = op.output_types()[output];
    const DType want = reader.op().input_types()[in.index];
    if (BaseType(have) == BaseType(want)) continue;
    return InvalidArgument("Input ", in.index, " of node ", reader.name(),
                           " was passed ", DTypeName(have), " from ", n.name(),
                           ":", output, " incompatible with expected ",
                           DTypeName(want), ".");
  }
  return OkStatus();
}

// Gives the node another op, where it and the node's neighbours allow it. What
// is known of the outputs' shapes stays, as it does upstream.
Status ReplaceOp(Node* n, ResolvedOpPtr op) {
  const ResolvedOpPtr before = n->op_ptr();
  std::vector<Shape> shapes;
  std::vector<std::shared_ptr<const HandleData>> handles;
  for (int i = 0; i < n->num_outputs(); ++i) {
    shapes.push_back(n->output_shape(i));
    handles.push_back(n->output_handle(i));
  }
  n->set_op(std::move(op));
  // Its rule for shapes looks at the attributes together (a constant's type and
  // tensor).
  Status fits = InferNode(n);
  for (int i = 0; i < n->num_outputs(); ++i) {
    n->set_output_shape(i, shapes[i]);
    n->set_output_handle(i, handles[i]);
  }
  if (!fits.ok()) n->set_op(before);
  return fits;
}

// The node's op with its attributes changed by change(AttrMap*), a Status.
template <typename F>
Status ChangeAttrs(TF_Graph* g, TF_Operation* oper, F&& change) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(Node * n, NodeOf(g, oper));
  AttrMap attrs = n->op().attrs();
  HR_RETURN_IF_ERROR(change(&attrs));
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op,
                      ResolveOp(n->def(), n->op().input_types(), attrs));
  if (op->num_outputs() != n->num_outputs()) {
    return InvalidArgument("Cannot give ", n->name(), " ", op->num_outputs(),
                           " outputs, it has ", n->num_outputs());
  }
  HR_RETURN_IF_ERROR(CheckReaders(g, *n, *op));
  HR_RETURN_IF_ERROR(ReplaceOp(n, std::move(op)));
  g->NoteChange(n);
  return OkStatus();
}

Status SetAttrOf(TF_Graph* g, TF_Operation* oper, const char* name,
                 const TF_Buffer* proto) {
  HR_RETURN_IF_ERROR(NotNull(name, "attr_name"));
  HR_RETURN_IF_ERROR(NotNull(proto, "attr_value_proto"));
  tensorflow::AttrValue read;
  HR_RETURN_IF_ERROR(ReadProto(proto->data, proto->length, "AttrValue", &read));
  return ChangeAttrs(g, oper, [&](AttrMap* attrs) -> Status {
    const AttrDef* def = oper->node->def().FindAttr(name);
    HR_ASSIGN_OR_RETURN(AttrValue value,
                        AttrFromProto(read, def ? def->kind : AttrKind::kNone));
    attrs->Set(name, std::move(value));
    return OkStatus();
  });
}

// A function that is told of mistakes by nobody: does nothing then.
template <typename F>
void Quietly(TF_Graph* g, TF_Operation* oper, F&& change) {
  if (g == nullptr || oper == nullptr || oper->graph != g) return;
  OrElse(0, [&] {
    MutexLock lock(g->mutex);
    change(oper->node);
    g->NoteChange(oper->node);
    return 0;
  });
}

// Whether all that the output is made of is there without feeds and state.
bool IsConstant(const Edge& e) {
  std::vector<const Node*> open = {e.node};
  HashSet<const Node*> seen = {e.node};
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    const OpDef& op = n->def();
    if (op.is_stateful || op.Is(OpRole::kPlaceholder) || CallsFunctions(op) ||
        op.cpu_kernel == nullptr || !n->control_inputs().empty()) {
      return false;
    }
    if (n->num_inputs() == 0 && !op.Is(OpRole::kConstant)) return false;
    for (const Edge& in : n->inputs()) {
      if (IsRef(in.node->output_type(in.index))) return false;
      if (seen.insert(in.node).second) open.push_back(in.node);
    }
  }
  return true;
}

StatusOr<TF_Tensor*> Evaluate(TF_Graph* g, TF_Output output) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(g, output));
  if (const Tensor* known = e.node->constant(); known && e.index == 0) {
    return FromTensor(*known);
  }
  if (!IsConstant(e)) return nullptr;
  HR_ASSIGN_OR_RETURN(auto plan, Executable::Make(*g->graph, {}, {&e, 1}, {},
                                                  g->graph->library().get()));
  LibraryCaller caller(g->graph->library());
  RunServices services;
  services.resources = &DefaultResources();
  services.functions = &caller;
  std::vector<Tensor> results;
  HR_RETURN_IF_ERROR(plan->Run(services, {}, &results));
  return FromTensor(std::move(results[0]));
}

StatusOr<TF_Buffer*> HandleShape(TF_Graph* g, TF_Output output) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(g, output));
  HandleProto proto;
  if (auto known = e.node->output_handle(e.index)) {
    proto.set_is_set(true);
    for (const HandlePart& part : *known) {
      auto* p = proto.add_shape_and_type();
      ShapeToProto(part.shape, p->mutable_shape());
      p->set_dtype(TypeToProto(part.dtype));
    }
  }
  return NewBuffer(proto);
}

Status SetHandleShape(TF_Graph* g, TF_Output output, const void* bytes,
                      size_t length) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  HandleProto proto;
  HR_RETURN_IF_ERROR(ReadProto(bytes, length, "HandleData", &proto));
  auto known = std::make_shared<HandleData>();
  for (const auto& part : proto.shape_and_type()) {
    HR_ASSIGN_OR_RETURN(Shape shape, ShapeFromProto(part.shape()));
    HR_ASSIGN_OR_RETURN(DType dtype, ToDType(part.dtype()));
    known->push_back({dtype, std::move(shape)});
  }
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(g, output));
  e.node->set_output_handle(e.index, proto.is_set() ? known : nullptr);
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::Status;

void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst,
                   TF_Status* status) {
  capi::Into(status, [&] { return capi::UpdateEdge(graph, new_src, dst); });
}

void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op,
                                 TF_Operation* input) {
  if (input == nullptr || input->graph != graph) return;
  capi::Quietly(graph, op,
                [&](headrace::Node* n) { n->AddControlInput(input->node); });
}

void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op) {
  capi::Quietly(graph, op, [](headrace::Node* n) { n->RemoveControlInputs(); });
}

void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op,
                           const char* device) {
  capi::Quietly(graph, op, [&](headrace::Node* n) {
    n->set_device(device ? device : "");
  });
}

void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                TF_Buffer* attr_value_proto, TF_Status* status) {
  capi::Into(status, [&] {
    return capi::SetAttrOf(graph, op, attr_name, attr_value_proto);
  });
}

void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                  TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(attr_name, "attr_name"));
    return capi::ChangeAttrs(graph, op, [&](headrace::AttrMap* attrs) {
      attrs->Erase(attr_name);
      return headrace::OkStatus();
    });
  });
}

// Full types say nothing here that types and handles do not.
void TF_SetFullType(TF_Graph* graph, TF_Operation* op,
                    const TF_Buffer* full_type_proto) {}

void TF_SetRequireShapeInferenceFns(TF_Graph* graph, bool require) {}

void TF_AddWhileInputHack(TF_Graph* graph, TF_Output new_src, TF_Operation* dst,
                          TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(graph, "graph"));
    headrace::MutexLock lock(graph->mutex);
    HR_RETURN_IF_ERROR(capi::EdgeOf(graph, new_src).status());
    HR_ASSIGN_OR_RETURN(headrace::Node * n, capi::NodeOf(graph, dst));
    return headrace::Unimplemented(
        "TF_AddWhileInputHack: '", n->name(), "' (", n->def().name,
        ") is made with all of its inputs, and gets no other");
  });
}

TF_Buffer* TF_GetHandleShapeAndType(TF_Graph* graph, TF_Output output) {
  return capi::OrElse<TF_Buffer*>(nullptr, [&] {
    headrace::StatusOr<TF_Buffer*> made = capi::HandleShape(graph, output);
    return made.ok() ? *made : nullptr;
  });
}

void TF_SetHandleShapeAndType(TF_Graph* graph, TF_Output output,
                              const void* proto, size_t proto_len,
                              TF_Status* status) {
  capi::Into(status, [&] {
    return capi::SetHandleShape(graph, output, proto, proto_len);
  });
}

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output,
                                     TF_Tensor** result, TF_Status* status) {
  if (result == nullptr) {
    capi::Into(status, [] { return capi::NotNull(nullptr, "result"); });
    return 0;
  }
  *result = capi::OrNull(status, [&] { return capi::Evaluate(graph, output); });
  return *result != nullptr;
}
