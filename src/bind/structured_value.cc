#include "bind/structured_value.h"

#include <nanobind/stl/string.h>

#include "bind/python/graph_object.h"
#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/tensor_object.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

using tensorflow::StructuredValue;

nb::object ShapeOfProto(const tensorflow::TensorShapeProto& proto) {
  StatusOr<Shape> shape = ShapeFromProto(proto);
  if (!shape.ok()) ThrowStatus(shape.status());
  return nb::steal(ShapeObject(*shape));
}

nb::object TensorOfProto(const tensorflow::TensorProto& proto) {
  StatusOr<Tensor> t = TensorFromProto(proto);
  if (!t.ok()) ThrowStatus(t.status());
  return WrapObject(Value(*std::move(t)));
}

nb::object NameOrNone(const std::string& name) {
  return name.empty() ? nb::none() : nb::object(nb::str(name.c_str()));
}

template <typename Values>
nb::list ListOfValues(const Values& values) {
  nb::list out;
  for (const StructuredValue& v : values) out.append(ToPython(v));
  return out;
}

nb::object DictOf(const tensorflow::DictValue& dict) {
  nb::dict out;
  for (const auto& [key, value] : dict.fields()) {
    out[key.c_str()] = ToPython(value);
  }
  return nb::make_tuple("dict", out);
}

nb::object NamedTupleOf(const tensorflow::NamedTupleValue& named) {
  nb::list fields;
  for (const auto& pair : named.values()) {
    fields.append(nb::make_tuple(pair.key(), ToPython(pair.value())));
  }
  return nb::make_tuple("named_tuple", named.name(), fields);
}

void SetShape(nb::handle object, tensorflow::TensorShapeProto* proto) {
  Shape shape;
  if (!AsShape(object.ptr(), &shape)) nb::raise_python_error();
  ShapeToProto(shape, proto);
}

tensorflow::DataType DTypeFrom(nb::handle object) {
  const DType dtype = AsDType(object.ptr());
  if (dtype == DType::kInvalid) throw nb::type_error("a dtype is wanted");
  return TypeToProto(dtype);
}

void SetTensor(nb::handle object, tensorflow::TensorProto* proto) {
  const Value value = ValueOrHandle(object);
  Status s = TensorToProto(value.tensor(), proto);
  if (!s.ok()) ThrowStatus(s);
}

std::string TextOf(nb::handle object) {
  return object.is_none() ? "" : nb::cast<std::string>(object);
}

void SetSpec(const nb::tuple& from, tensorflow::TensorSpecProto* spec) {
  SetShape(from[1], spec->mutable_shape());
  spec->set_dtype(DTypeFrom(from[2]));
  spec->set_name(TextOf(from[3]));
}

void SetBounded(const nb::tuple& from,
                tensorflow::BoundedTensorSpecProto* spec) {
  SetShape(from[1], spec->mutable_shape());
  spec->set_dtype(DTypeFrom(from[2]));
  SetTensor(from[3], spec->mutable_minimum());
  SetTensor(from[4], spec->mutable_maximum());
  spec->set_name(TextOf(from[5]));
}

void SetTypeSpec(const nb::tuple& from, tensorflow::TypeSpecProto* spec) {
  using Proto = tensorflow::TypeSpecProto;
  const int number = nb::cast<int>(from[1]);
  if (!Proto::TypeSpecClass_IsValid(number)) {
    throw nb::value_error("no class of specs");
  }
  spec->set_type_spec_class(static_cast<Proto::TypeSpecClass>(number));
  spec->set_type_spec_class_name(TextOf(from[2]));
  FromPython(from[3], spec->mutable_type_state());
  spec->set_num_flat_components(nb::cast<int>(from[4]));
}

void SetTagged(const nb::tuple& from, StructuredValue* value) {
  const std::string kind = nb::cast<std::string>(from[0]);
  if (kind == "list") {
    auto* list = value->mutable_list_value();
    for (nb::handle v : from[1]) FromPython(v, list->add_values());
  } else if (kind == "tuple") {
    auto* tuple = value->mutable_tuple_value();
    for (nb::handle v : from[1]) FromPython(v, tuple->add_values());
  } else if (kind == "dict") {
    auto& fields = *value->mutable_dict_value()->mutable_fields();
    for (const auto& [key, v] : nb::cast<nb::dict>(from[1])) {
      FromPython(v, &fields[nb::cast<std::string>(key)]);
    }
  } else if (kind == "named_tuple") {
    auto* named = value->mutable_named_tuple_value();
    named->set_name(nb::cast<std::string>(from[1]));
    for (nb::handle field : from[2]) {
      auto* pair = named->add_values();
      pair->set_key(nb::cast<std::string>(field[0]));
      FromPython(field[1], pair->mutable_value());
    }
  } else if (kind == "tensor_spec") {
    SetSpec(from, value->mutable_tensor_spec_value());
  } else if (kind == "bounded_tensor_spec") {
    SetBounded(from, value->mutable_bounded_tensor_spec_value());
  } else if (kind == "type_spec") {
    SetTypeSpec(from, value->mutable_type_spec_value());
  } else if (kind == "tensor") {
    SetTensor(from[1], value->mutable_tensor_value());
  } else if (kind == "array") {
    SetTensor(from[1], value->mutable_numpy_value());
  } else {
    throw nb::type_error("no kind of structured values");
  }
}

nb::object SpecOf(const tensorflow::TensorSpecProto& spec) {
  return nb::make_tuple("tensor_spec", ShapeOfProto(spec.shape()),
                        DTypeOfProto(spec.dtype()), NameOrNone(spec.name()));
}

nb::object BoundedOf(const tensorflow::BoundedTensorSpecProto& spec) {
  return nb::make_tuple("bounded_tensor_spec", ShapeOfProto(spec.shape()),
                        DTypeOfProto(spec.dtype()),
                        TensorOfProto(spec.minimum()),
                        TensorOfProto(spec.maximum()), NameOrNone(spec.name()));
}

}  // namespace

nb::object DTypeOfProto(tensorflow::DataType dtype) {
  PyObject* o = DTypeObject(static_cast<headrace::DType>(dtype));
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o);
}

nb::object ToPython(const StructuredValue& value) {
  switch (value.kind_case()) {
    case StructuredValue::kNoneValue:
    case StructuredValue::KIND_NOT_SET:
      return nb::none();
    case StructuredValue::kFloat64Value:
      return nb::float_(value.float64_value());
    case StructuredValue::kInt64Value:
      return nb::int_(value.int64_value());
    case StructuredValue::kStringValue:
      return nb::str(value.string_value().data(), value.string_value().size());
    case StructuredValue::kBoolValue:
      return nb::bool_(value.bool_value());
    case StructuredValue::kTensorShapeValue:
      return ShapeOfProto(value.tensor_shape_value());
    case StructuredValue::kTensorDtypeValue:
      return DTypeOfProto(value.tensor_dtype_value());
    case StructuredValue::kTensorSpecValue:
      return SpecOf(value.tensor_spec_value());
    case StructuredValue::kBoundedTensorSpecValue:
      return BoundedOf(value.bounded_tensor_spec_value());
    case StructuredValue::kTypeSpecValue: {
      const auto& spec = value.type_spec_value();
      return nb::make_tuple(
          "type_spec", static_cast<int>(spec.type_spec_class()),
          spec.type_spec_class_name(), ToPython(spec.type_state()),
          spec.num_flat_components());
    }
    case StructuredValue::kListValue:
      return nb::make_tuple("list", ListOfValues(value.list_value().values()));
    case StructuredValue::kTupleValue:
      return nb::make_tuple("tuple",
                            ListOfValues(value.tuple_value().values()));
    case StructuredValue::kDictValue:
      return DictOf(value.dict_value());
    case StructuredValue::kNamedTupleValue:
      return NamedTupleOf(value.named_tuple_value());
    case StructuredValue::kTensorValue:
      return nb::make_tuple("tensor", TensorOfProto(value.tensor_value()));
    case StructuredValue::kNumpyValue:
      return nb::make_tuple("array", TensorOfProto(value.numpy_value()));
  }
  return nb::none();
}

void FromPython(nb::handle object, StructuredValue* value) {
  if (object.is_none()) {
    value->mutable_none_value();
  } else if (nb::isinstance<nb::bool_>(object)) {  // before ints: it is one
    value->set_bool_value(nb::cast<bool>(object));
  } else if (nb::isinstance<nb::int_>(object)) {
    value->set_int64_value(nb::cast<int64_t>(object));
  } else if (nb::isinstance<nb::float_>(object)) {
    value->set_float64_value(nb::cast<double>(object));
  } else if (nb::isinstance<nb::str>(object)) {
    value->set_string_value(nb::cast<std::string>(object));
  } else if (IsDTypeObject(object.ptr())) {
    value->set_tensor_dtype_value(DTypeFrom(object));
  } else if (IsShapeObject(object.ptr())) {
    SetShape(object, value->mutable_tensor_shape_value());
  } else if (nb::isinstance<nb::tuple>(object) && nb::len(object) > 1) {
    SetTagged(nb::cast<nb::tuple>(object), value);
  } else {
    throw nb::type_error("no structured value");
  }
}

}  // namespace headrace::bind
