// c_api_experimental.h: what is known of ops and of the shapes of calls.
#include <algorithm>
#include <cstring>

#include "c/attr_values.h"
#include "c/eager/op.h"
#include "c/status.h"
#include "c/tensor.h"
#include "op/op_text.h"
#include "op/registry.h"
#include "op/shape_context.h"
#include "tensorflow/c/c_api_experimental.h"

struct TF_AttrBuilder {
  std::string op;
  headrace::AttrMap attrs;
  headrace::Status status;

  void Fail(headrace::Status s) { status.Update(std::move(s)); }
};

namespace headrace::capi {
namespace {

StatusOr<const OpDef*> OpOf(const char* name) {
  HR_RETURN_IF_ERROR(NotNull(name, "the name of an op"));
  return LookUpOp(name);
}

Status CheckAllowed(const OpDef& op, const AttrDef& attr, DType type) {
  if (attr.allowed_types.empty()) return OkStatus();
  for (DType allowed : attr.allowed_types) {
    if (allowed == type) return OkStatus();
  }
  return InvalidArgument("No OpKernel registered to support Op '", op.name,
                         "' with attr '", attr.name, "' of ", DTypeName(type));
}

Status CheckRunsOn(const TF_AttrBuilder* builder, const char* device) {
  HR_RETURN_IF_ERROR(NotNull(builder, "builder"));
  HR_RETURN_IF_ERROR(NotNull(device, "device_type"));
  HR_RETURN_IF_ERROR(builder->status);
  HR_ASSIGN_OR_RETURN(const OpDef* op, OpOf(builder->op.c_str()));
  if (std::strcmp(device, "CPU") != 0 || op->cpu_kernel == nullptr) {
    return InvalidArgument("Op ", op->name,
                           " has no kernel for devices of type ", device);
  }
  for (const auto& [name, value] : builder->attrs) {
    const AttrDef* attr = op->FindAttr(name);
    if (attr == nullptr || attr->kind != value.kind()) {
      return InvalidArgument("Op ", op->name, " has no attr '", name,
                             "' of that kind");
    }
    if (const DType* type = std::get_if<DType>(&value)) {
      HR_RETURN_IF_ERROR(CheckAllowed(*op, *attr, *type));
    } else {
      for (DType t : std::get<std::vector<DType>>(value)) {
        HR_RETURN_IF_ERROR(CheckAllowed(*op, *attr, t));
      }
    }
  }
  return OkStatus();
}

StatusOr<const char*> CountOfInput(const char* name, int i) {
  HR_ASSIGN_OR_RETURN(const OpDef* op, OpOf(name));
  if (i < 0 || i >= static_cast<int>(op->inputs.size())) {
    return InvalidArgument(i, " out of range for ", op->name);
  }
  const std::string& attr = op->inputs[i].number_attr;
  if (attr.empty()) {
    return NotFound(op->name, " does not have number_attr() defined.");
  }
  return attr.c_str();
}

StatusOr<TFE_TensorHandle*> HandleOfScalar(TF_DataType type, const void* data,
                                           size_t len) {
  HR_RETURN_IF_ERROR(NotNull(data, "data"));
  HR_ASSIGN_OR_RETURN(const DType dtype, ToDType(static_cast<int>(type)));
  if (!IsPlain(dtype) || len != DTypeSize(dtype)) {
    return InvalidArgument("a scalar of ", DTypeName(dtype), " is not of ", len,
                           " bytes");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, Shape()));
  std::memcpy(t.raw(), data, len);
  return new TFE_TensorHandle{std::move(t), nullptr};
}

// ---- Lists of shapes.

void FreeItems(TF_ShapeAndTypeList* list) {
  for (int i = 0; i < list->num_items; ++i) delete[] list->items[i].dims;
  delete[] list->items;
  delete list;
}

TF_ShapeAndTypeList* NewList(int count) {
  if (count < 0) return nullptr;
  auto list = std::make_unique<TF_ShapeAndTypeList>();
  list->items = new TF_ShapeAndType[count];
  list->num_items = count;
  for (int i = 0; i < count; ++i) {
    list->items[i] = {-1, nullptr, static_cast<TF_DataType>(0)};
  }
  return list.release();
}

TF_ShapeAndType* ItemOf(TF_ShapeAndTypeList* list, int i) {
  if (list == nullptr || i < 0 || i >= list->num_items) return nullptr;
  return &list->items[i];
}

void SetItem(TF_ShapeAndType* item, const int64_t* dims, int rank) {
  int64_t* copy = nullptr;
  if (rank > 0) {
    copy = new int64_t[rank];
    std::copy(dims, dims + rank, copy);
  }
  delete[] item->dims;
  item->num_dims = rank;
  item->dims = copy;
}

Status InferShapes(TFE_Op* op, const TF_ShapeAndTypeList* shapes,
                   TF_Tensor** tensors, TF_ShapeAndTypeList** out) {
  HR_RETURN_IF_ERROR(NotNull(op, "op"));
  HR_RETURN_IF_ERROR(NotNull(shapes, "input_shapes"));
  HR_RETURN_IF_ERROR(NotNull(out, "output_shapes"));
  HR_RETURN_IF_ERROR(op->status);
  std::vector<DType> types;
  std::vector<Shape> inputs;
  std::vector<Tensor> known(shapes->num_items);
  for (int i = 0; i < shapes->num_items; ++i) {
    const TF_ShapeAndType& item = shapes->items[i];
    HR_ASSIGN_OR_RETURN(Shape shape, ToShape(item.dims, item.num_dims, true));
    inputs.push_back(std::move(shape));
    if (tensors && tensors[i]) {
      HR_ASSIGN_OR_RETURN(known[i], ToTensor(tensors[i]));
    }
    if (item.dtype != 0) {
      HR_ASSIGN_OR_RETURN(DType type, ToDType(static_cast<int>(item.dtype)));
      types.push_back(type);
    } else if (known[i].has_buffer()) {
      types.push_back(known[i].dtype());
    } else {
      return InvalidArgument("the type of input ", i, " of op ", op->name,
                             " is not known");
    }
  }
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr call,
                      ResolveOp(*op->def, types, op->attrs));
  std::vector<const Shape*> at;
  std::vector<const Tensor*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    at.push_back(&inputs[i]);
    values.push_back(known[i].has_buffer() ? &known[i] : nullptr);
  }
  ShapeContext c(*call, at, values);
  HR_RETURN_IF_ERROR(RunShapeRule(c));
  TF_ShapeAndTypeList* list = NewList(c.num_outputs());
  for (int i = 0; i < c.num_outputs(); ++i) {
    const Shape& s = c.output(i);
    if (s.known_rank()) SetItem(&list->items[i], s.dims().data(), s.rank());
    list->items[i].dtype = static_cast<TF_DataType>(call->output_types()[i]);
  }
  *out = list;
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_AttrBuilder* TF_NewAttrBuilder(const char* op_name) {
  return capi::OrElse<TF_AttrBuilder*>(nullptr, [&] {
    return new TF_AttrBuilder{op_name ? op_name : "", {}, {}};
  });
}

void TF_DeleteAttrBuilder(TF_AttrBuilder* builder) { delete builder; }

void TF_AttrBuilderSetType(TF_AttrBuilder* builder, const char* attr_name,
                           TF_DataType value) {
  capi::SetAttr(builder, attr_name, [&] { return capi::TypeAttr(value); });
}

void TF_AttrBuilderSetTypeList(TF_AttrBuilder* builder, const char* attr_name,
                               const TF_DataType* values, int num_values) {
  capi::SetAttr(builder, attr_name,
                [&] { return capi::TypesAttr(values, num_values); });
}

void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder* builder,
                                       const char* device_type,
                                       TF_Status* status) {
  capi::Into(status, [&] { return capi::CheckRunsOn(builder, device_type); });
}

const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index,
                                           TF_Status* status) {
  return capi::OrNull(status,
                      [&] { return capi::CountOfInput(op_name, input_index); });
}

int TF_OpIsStateful(const char* op_type, TF_Status* status) {
  int stateful = 0;
  capi::Into(status, [&]() -> headrace::Status {
    HR_ASSIGN_OR_RETURN(const headrace::OpDef* op, capi::OpOf(op_type));
    stateful = op->is_stateful;
    return headrace::OkStatus();
  });
  return stateful;
}

TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type,
                                                void* data, size_t len,
                                                TF_Status* status) {
  return capi::OrNull(
      status, [&] { return capi::HandleOfScalar(data_type, data, len); });
}

TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes) {
  return capi::OrElse<TF_ShapeAndTypeList*>(
      nullptr, [&] { return capi::NewList(num_shapes); });
}

void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index,
                                 const int64_t* dims, int num_dims) {
  TF_ShapeAndType* item = capi::ItemOf(shape_list, index);
  if (item == nullptr || num_dims < 0 || (num_dims > 0 && dims == nullptr)) {
    return;
  }
  capi::OrElse(0, [&] {
    capi::SetItem(item, dims, num_dims);
    return 0;
  });
}

void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list,
                                        int index) {
  TF_ShapeAndType* item = capi::ItemOf(shape_list, index);
  if (item) capi::SetItem(item, nullptr, -1);
}

void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index,
                                 TF_DataType dtype) {
  TF_ShapeAndType* item = capi::ItemOf(shape_list, index);
  if (item) item->dtype = dtype;
}

void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list) {
  if (shape_list) capi::FreeItems(shape_list);
}

void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array,
                                    int num_items) {
  if (shape_list_array == nullptr) return;
  for (int i = 0; i < num_items; ++i) {
    TF_DeleteShapeAndTypeList(shape_list_array[i]);
  }
  delete[] shape_list_array;
}

void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes,
                     TF_Tensor** input_tensors,
                     TF_ShapeAndTypeList* input_tensor_as_shapes,
                     TF_ShapeAndTypeList** input_resource_shapes_and_types,
                     TF_ShapeAndTypeList** output_shapes,
                     TF_ShapeAndTypeList*** output_resource_shapes_and_types,
                     TF_Status* status) {
  capi::Into(status, [&]() -> headrace::Status {
    if (input_tensor_as_shapes || input_resource_shapes_and_types ||
        output_resource_shapes_and_types) {
      return headrace::Unimplemented(
          "TFE_InferShapes neither takes values known in part nor tells what "
          "is "
          "behind handles: these arguments must be null");
    }
    return capi::InferShapes(op, input_shapes, input_tensors, output_shapes);
  });
}
