// The functions that describe an operation.
#include <algorithm>

#include "c/attr_values.h"
#include "c/buffer.h"
#include "c/description.h"
#include "c/status.h"
#include "graph/attr_proto.h"
#include "op/registry.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

namespace headrace::capi {
namespace {

using NodeDescription = TF_OperationDescription;

StatusOr<Shape> ShapeOfProto(const void* proto, size_t length) {
  tensorflow::TensorShapeProto shape;
  HR_RETURN_IF_ERROR(ReadProto(proto, length, "TensorShapeProto", &shape));
  return ShapeFromProto(shape);
}

StatusOr<AttrValue> ShapesOfProtos(const void* const* protos,
                                   const size_t* lengths, int count) {
  HR_RETURN_IF_ERROR(CheckValues(protos, count));
  HR_RETURN_IF_ERROR(CheckValues(lengths, count));
  std::vector<Shape> shapes;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(Shape shape, ShapeOfProto(protos[i], lengths[i]));
    shapes.push_back(std::move(shape));
  }
  return AttrValue(std::move(shapes));
}

StatusOr<AttrValue> ValueOfProto(const NodeDescription& d, const char* name,
                                 const void* proto, size_t length) {
  tensorflow::AttrValue value;
  HR_RETURN_IF_ERROR(ReadProto(proto, length, "AttrValue", &value));
  // An empty list is of the kind that the op says.
  const OpDef* op = FindOp(d.op_type);
  const AttrDef* attr = op ? op->FindAttr(name) : nullptr;
  return AttrFromProto(value, attr ? attr->kind : AttrKind::kNone);
}

void AddInputs(NodeDescription* d, bool is_list, const TF_Output* inputs,
               int count) {
  if (d == nullptr) return;
  Status s = Guarded("the C interface", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(std::vector<Edge> edges,
                        EdgesOf(d->graph, inputs, count));
    d->inputs.push_back({is_list, std::move(edges)});
    return OkStatus();
  });
  d->Fail(std::move(s));
}

template <typename F>
void AddNode(NodeDescription* d, const TF_Operation* oper, F&& add) {
  if (d == nullptr) return;
  Status s = Guarded("the C interface", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(Node * node, NodeOf(d->graph, oper));
    add(node);
    return OkStatus();
  });
  d->Fail(std::move(s));
}

TF_Operation* Finish(NodeDescription* desc, TF_Status* status) {
  std::unique_ptr<NodeDescription> d(desc);
  return OrNull(status, [&]() -> StatusOr<TF_Operation*> {
    HR_RETURN_IF_ERROR(NotNull(d.get(), "the description"));
    MutexLock lock(d->graph->mutex);
    HR_ASSIGN_OR_RETURN(Node * node, FinishNode(*d));
    return d->graph->OperationOf(node);
  });
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::AttrValue;
using headrace::StatusOr;

TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type,
                                         const char* oper_name) {
  if (graph == nullptr) return nullptr;
  return capi::OrElse<TF_OperationDescription*>(nullptr, [&] {
    auto d = std::make_unique<TF_OperationDescription>();
    d->graph = graph;
    if (op_type) d->op_type = op_type;
    if (oper_name) d->name = oper_name;
    return d.release();
  });
}

TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph,
                                               const char* op_type,
                                               const char* oper_name) {
  return TF_NewOperation(graph, op_type, oper_name);
}

TF_Operation* TF_FinishOperation(TF_OperationDescription* desc,
                                 TF_Status* status) {
  return capi::Finish(desc, status);
}

TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc,
                                       TF_Status* status) {
  return capi::Finish(desc, status);
}

void TF_SetDevice(TF_OperationDescription* desc, const char* device) {
  if (desc) desc->device = device ? device : "";
}

void TF_AddInput(TF_OperationDescription* desc, TF_Output input) {
  capi::AddInputs(desc, /*is_list=*/false, &input, 1);
}

void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs,
                     int num_inputs) {
  capi::AddInputs(desc, /*is_list=*/true, inputs, num_inputs);
}

void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input) {
  capi::AddNode(desc, input,
                [&](headrace::Node* n) { desc->controls.push_back(n); });
}

void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op) {
  capi::AddNode(desc, op, [&](headrace::Node* n) {
    desc->colocations.insert("loc:@" + n->name());
  });
}

void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name,
                      const void* value, size_t length) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::StringAttr(value, length); });
}

void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                          const void* const* values, const size_t* lengths,
                          int num_values) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::StringsAttr(values, lengths, num_values); });
}

void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name,
                   int64_t value) {
  capi::SetAttr(desc, attr_name,
                [&]() -> StatusOr<AttrValue> { return AttrValue(value); });
}

void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name,
                       const int64_t* values, int num_values) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::ListAttr(values, num_values); });
}

void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name,
                     float value) {
  capi::SetAttr(desc, attr_name,
                [&]() -> StatusOr<AttrValue> { return AttrValue(value); });
}

void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name,
                         const float* values, int num_values) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::ListAttr(values, num_values); });
}

void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name,
                    unsigned char value) {
  capi::SetAttr(desc, attr_name,
                [&]() -> StatusOr<AttrValue> { return AttrValue(value != 0); });
}

void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name,
                        const unsigned char* values, int num_values) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::BoolsAttr(values, num_values); });
}

void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name,
                    TF_DataType value) {
  capi::SetAttr(desc, attr_name, [&] { return capi::TypeAttr(value); });
}

void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name,
                        const TF_DataType* values, int num_values) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::TypesAttr(values, num_values); });
}

void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                           const char* placeholder) {
  capi::SetAttr(desc, attr_name, [&]() -> StatusOr<AttrValue> {
    HR_RETURN_IF_ERROR(capi::NotNull(placeholder, "placeholder"));
    return AttrValue(headrace::AttrPlaceholder{placeholder});
  });
}

void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name,
                        const char* value, size_t length) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::FunctionAttr(value, length); });
}

void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name,
                     const int64_t* dims, int num_dims) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::ShapeAttr(dims, num_dims); });
}

void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                         const int64_t* const* dims, const int* num_dims,
                         int num_shapes) {
  capi::SetAttr(desc, attr_name,
                [&] { return capi::ShapesAttr(dims, num_dims, num_shapes); });
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc,
                                const char* attr_name, const void* proto,
                                size_t proto_len, TF_Status* status) {
  capi::SetAttrNow(desc, "the description", attr_name, status,
                   [&]() -> StatusOr<AttrValue> {
                     HR_ASSIGN_OR_RETURN(headrace::Shape shape,
                                         capi::ShapeOfProto(proto, proto_len));
                     return AttrValue(std::move(shape));
                   });
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc,
                                    const char* attr_name,
                                    const void* const* protos,
                                    const size_t* proto_lens, int num_shapes,
                                    TF_Status* status) {
  capi::SetAttrNow(desc, "the description", attr_name, status, [&] {
    return capi::ShapesOfProtos(protos, proto_lens, num_shapes);
  });
}

void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name,
                      TF_Tensor* value, TF_Status* status) {
  capi::SetAttrNow(desc, "the description", attr_name, status,
                   [&] { return capi::TensorAttr(value); });
}

void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name,
                          TF_Tensor* const* values, int num_values,
                          TF_Status* status) {
  capi::SetAttrNow(desc, "the description", attr_name, status,
                   [&] { return capi::TensorsAttr(values, num_values); });
}

void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name,
                          const void* proto, size_t proto_len,
                          TF_Status* status) {
  capi::SetAttrNow(desc, "the description", attr_name, status, [&] {
    return capi::ValueOfProto(*desc, attr_name, proto, proto_len);
  });
}
