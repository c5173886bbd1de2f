#include "graph/attr_proto.h"

#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace headrace {
namespace {

using Proto = tensorflow::AttrValue;
using List = tensorflow::AttrValue::ListValue;

AttrKind ListKind(const List& l) {
  if (l.i_size()) return AttrKind::kIntList;
  if (l.f_size()) return AttrKind::kFloatList;
  if (l.b_size()) return AttrKind::kBoolList;
  if (l.s_size()) return AttrKind::kStringList;
  if (l.type_size()) return AttrKind::kTypeList;
  if (l.shape_size()) return AttrKind::kShapeList;
  if (l.tensor_size()) return AttrKind::kTensorList;
  if (l.func_size()) return AttrKind::kFuncList;
  return AttrKind::kNone;  // empty: any of them
}

bool IsList(AttrKind k) {
  return k >= AttrKind::kIntList && k <= AttrKind::kFuncList;
}

AttrKind KindOf(const Proto& p) {
  switch (p.value_case()) {
    case Proto::kI:
      return AttrKind::kInt;
    case Proto::kF:
      return AttrKind::kFloat;
    case Proto::kB:
      return AttrKind::kBool;
    case Proto::kS:
      return AttrKind::kString;
    case Proto::kType:
      return AttrKind::kType;
    case Proto::kShape:
      return AttrKind::kShape;
    case Proto::kTensor:
      return AttrKind::kTensor;
    case Proto::kFunc:
      return AttrKind::kFunc;
    case Proto::kPlaceholder:
      return AttrKind::kPlaceholder;
    case Proto::kList:
      return ListKind(p.list());
    default:
      return AttrKind::kNone;
  }
}

StatusOr<DType> TypeFromProto(int number) {
  if (!DTypeIsValid(number)) {
    return InvalidArgument("Invalid data type number ", number);
  }
  return static_cast<DType>(number);
}

Tensor TensorOrDescription(const tensorflow::TensorProto& p) {
  StatusOr<Tensor> t = TensorFromProto(p);
  // A tensor that cannot be read still names its type and shape, which is all
  // that most readers of attributes ask.
  if (t.ok()) return *std::move(t);
  StatusOr<Shape> shape = ShapeFromProto(p.tensor_shape());
  bool valid = DTypeIsValid(p.dtype()) && p.dtype() < kRefOffset;
  return Tensor(valid ? static_cast<DType>(p.dtype()) : DType::kInvalid,
                shape.ok() ? *std::move(shape) : Shape::UnknownRank());
}

StatusOr<FuncRef> FuncFromProto(const tensorflow::NameAttrList& p) {
  FuncRef f{p.name(), nullptr};
  // A null map stands for "no attributes", so that functions without any are
  // cheap to copy.
  if (p.attr().empty()) return f;
  auto attrs = std::make_shared<AttrMap>();
  for (const auto& [name, value] : p.attr()) {
    // The function's definition is not at hand, so no kind can be asked for.
    HR_ASSIGN_OR_RETURN(AttrValue v, AttrFromProto(value, AttrKind::kNone));
    attrs->Set(name, std::move(v));
  }
  f.attrs = std::move(attrs);
  return f;
}

StatusOr<AttrValue> ListFromProto(const List& l, AttrKind kind) {
  switch (kind) {
    case AttrKind::kFloatList:
      return std::vector<float>(l.f().begin(), l.f().end());
    case AttrKind::kBoolList:
      return std::vector<bool>(l.b().begin(), l.b().end());
    case AttrKind::kStringList:
      return std::vector<std::string>(l.s().begin(), l.s().end());
    case AttrKind::kTypeList: {
      std::vector<DType> types;
      for (int number : l.type()) {
        HR_ASSIGN_OR_RETURN(DType d, TypeFromProto(number));
        types.push_back(d);
      }
      return types;
    }
    case AttrKind::kShapeList: {
      std::vector<Shape> shapes;
      for (const auto& p : l.shape()) {
        HR_ASSIGN_OR_RETURN(Shape s, ShapeFromProto(p));
        shapes.push_back(std::move(s));
      }
      return shapes;
    }
    case AttrKind::kTensorList: {
      std::vector<Tensor> tensors;
      for (const auto& p : l.tensor()) {
        tensors.push_back(TensorOrDescription(p));
      }
      return tensors;
    }
    case AttrKind::kFuncList: {
      std::vector<FuncRef> functions;
      for (const auto& p : l.func()) {
        HR_ASSIGN_OR_RETURN(FuncRef f, FuncFromProto(p));
        functions.push_back(std::move(f));
      }
      return functions;
    }
    default:
      return std::vector<int64_t>(l.i().begin(), l.i().end());
  }
}

Status FuncToProto(const FuncRef& f, tensorflow::NameAttrList* p) {
  p->set_name(f.name);
  if (!f.attrs) return OkStatus();
  for (const auto& [name, value] : *f.attrs) {
    HR_RETURN_IF_ERROR(AttrToProto(value, &(*p->mutable_attr())[name]));
  }
  return OkStatus();
}

struct ToProto {
  Proto* p;
  Status operator()(std::monostate) { return OkStatus(); }
  Status operator()(int64_t v) { return p->set_i(v), OkStatus(); }
  Status operator()(float v) { return p->set_f(v), OkStatus(); }
  Status operator()(bool v) { return p->set_b(v), OkStatus(); }
  Status operator()(const std::string& v) { return p->set_s(v), OkStatus(); }
  Status operator()(DType v) { return p->set_type(TypeToProto(v)), OkStatus(); }
  Status operator()(const Shape& v) {
    // Makes the field exist: a scalar's shape would write nothing.
    p->mutable_shape();
    return ShapeToProto(v, p->mutable_shape()), OkStatus();
  }
  Status operator()(const Tensor& v) {
    return TensorToProto(v, p->mutable_tensor());
  }
  Status operator()(const FuncRef& v) {
    return FuncToProto(v, p->mutable_func());
  }
  Status operator()(const AttrPlaceholder& v) {
    return p->set_placeholder(v.name), OkStatus();
  }
  template <typename T>
  Status operator()(const std::vector<T>& v) {
    // An empty list is a list all the same.
    p->mutable_list();
    for (const auto& x : v) {
      HR_RETURN_IF_ERROR(Add(static_cast<const T&>(x)));
    }
    return OkStatus();
  }
  Status Add(int64_t v) { return p->mutable_list()->add_i(v), OkStatus(); }
  Status Add(float v) { return p->mutable_list()->add_f(v), OkStatus(); }
  Status Add(bool v) { return p->mutable_list()->add_b(v), OkStatus(); }
  Status Add(const std::string& v) {
    return p->mutable_list()->add_s(v), OkStatus();
  }
  Status Add(DType v) {
    return p->mutable_list()->add_type(TypeToProto(v)), OkStatus();
  }
  Status Add(const Shape& v) {
    return ShapeToProto(v, p->mutable_list()->add_shape()), OkStatus();
  }
  Status Add(const Tensor& v) {
    return TensorToProto(v, p->mutable_list()->add_tensor());
  }
  Status Add(const FuncRef& v) {
    return FuncToProto(v, p->mutable_list()->add_func());
  }
};

}  // namespace

StatusOr<AttrValue> AttrFromProto(const Proto& p, AttrKind kind) {
  AttrKind have = KindOf(p);
  if (p.value_case() == Proto::kList) {
    // Two kinds in one list, or a list for a scalar, are refused below.
    // An empty list is of every kind.
    if (have == AttrKind::kNone && (kind == AttrKind::kNone || IsList(kind))) {
      have = kind;
    }
    if (kind != AttrKind::kNone && have != kind) {
      return InvalidArgument("AttrValue had value with type '",
                             have == AttrKind::kNone ? StringView("list(any)")
                                                     : AttrKindName(have),
                             "' when '", AttrKindName(kind), "' expected");
    }
    return ListFromProto(p.list(), have);
  }
  // A placeholder stands for a value of any kind; who cannot use one refuses
  // it.
  if (kind != AttrKind::kNone && have != kind &&
      have != AttrKind::kPlaceholder) {
    if (have == AttrKind::kNone) {
      return InvalidArgument("AttrValue missing value with expected type '",
                             AttrKindName(kind), "'");
    }
    return InvalidArgument("AttrValue had value with type '",
                           AttrKindName(have), "' when '", AttrKindName(kind),
                           "' expected");
  }
  switch (have) {
    case AttrKind::kInt:
      return AttrValue(p.i());
    case AttrKind::kFloat:
      return AttrValue(p.f());
    case AttrKind::kBool:
      return AttrValue(p.b());
    case AttrKind::kString:
      return AttrValue(p.s());
    case AttrKind::kType: {
      HR_ASSIGN_OR_RETURN(DType d, TypeFromProto(p.type()));
      return AttrValue(d);
    }
    case AttrKind::kShape: {
      HR_ASSIGN_OR_RETURN(Shape s, ShapeFromProto(p.shape()));
      return AttrValue(std::move(s));
    }
    case AttrKind::kTensor:
      // A wrong shape is refused, while a value that cannot be read may be
      // described.
      HR_RETURN_IF_ERROR(ShapeFromProto(p.tensor().tensor_shape()).status());
      return AttrValue(TensorOrDescription(p.tensor()));
    case AttrKind::kFunc: {
      HR_ASSIGN_OR_RETURN(FuncRef f, FuncFromProto(p.func()));
      return AttrValue(std::move(f));
    }
    case AttrKind::kPlaceholder:
      return AttrValue(AttrPlaceholder{p.placeholder()});
    default:
      return AttrValue();
  }
}

Status AttrToProto(const AttrValue& value, Proto* proto) {
  return std::visit(ToProto{proto},
                    static_cast<const AttrValue::variant&>(value));
}

}  // namespace headrace
