#include "command/text/json_value_tensor.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

namespace headrace::command {
namespace {

using Kind = JsonValue::Kind;

// As error messages show an element.
std::string ShownElement(const JsonValue& v) {
  switch (v.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kText:
      return absl::StrCat("\"", v.text, "\"");
    case Kind::kList:
      return "a list";
    case Kind::kObject:
      return "an object";
    default:
      return v.text;
  }
}

// The shape that the first elements of all levels show.
StatusOr<Shape> ShapeOfLists(const JsonValue& value) {
  std::vector<int64_t> dims;
  const JsonValue* v = &value;
  while (v->kind == Kind::kList) {
    dims.push_back(static_cast<int64_t>(v->items.size()));
    if (v->items.empty()) break;
    v = &v->items[0];
  }
  return Shape::Make(dims);
}

template <typename T>
Status ParseNumber(const JsonValue& v, T* out) {
  const bool is_bool = v.kind == Kind::kBool;
  if (!is_bool && v.kind != Kind::kNumber) return InvalidArgument("");
  if constexpr (std::is_integral_v<T>) {
    int64_t wide = v.text == "true";
    uint64_t wider = 0;
    if (!is_bool && !absl::SimpleAtoi(v.text, &wide)) {
      if (!std::is_same_v<T, uint64_t> || !absl::SimpleAtoi(v.text, &wider)) {
        return InvalidArgument("");
      }
      *out = static_cast<T>(wider);
      return OkStatus();
    }
    *out = static_cast<T>(wide);
    const bool fits = static_cast<int64_t>(*out) == wide &&
                      (wide >= 0 || std::is_signed_v<T>);
    return fits ? OkStatus() : InvalidArgument("");
  } else {
    double wide = v.text == "true";
    if (!is_bool && !absl::SimpleAtod(v.text, &wide)) {
      return InvalidArgument("");
    }
    *out = static_cast<T>(wide);
    return OkStatus();
  }
}

Status ParseBytes(const JsonValue& v, std::string* out) {
  if (v.kind == Kind::kText) {
    *out = v.text;
    return OkStatus();
  }
  const JsonValue* packed = v.kind == Kind::kObject ? v.Find("b64") : nullptr;
  if (packed != nullptr && v.keys.size() == 1 && packed->kind == Kind::kText &&
      absl::Base64Unescape(packed->text, out)) {
    return OkStatus();
  }
  return InvalidArgument("");
}

class ElementReader {
 public:
  explicit ElementReader(Tensor* tensor) : tensor_(tensor) {}

  Status Read(const JsonValue& v, int dim) {
    if (dim == tensor_->rank()) return ReadElement(v);
    if (v.kind != Kind::kList ||
        static_cast<int64_t>(v.items.size()) != tensor_->dim(dim)) {
      return InvalidArgument("lists of level ", dim + 1, " differ: expected ",
                             tensor_->dim(dim), " elements, got ",
                             v.kind == Kind::kList
                                 ? absl::StrCat(v.items.size())
                                 : ShownElement(v));
    }
    for (const JsonValue& item : v.items) {
      HR_RETURN_IF_ERROR(Read(item, dim + 1));
    }
    return OkStatus();
  }

 private:
  Status ReadElement(const JsonValue& v) {
    Status s = Unimplemented("no text stands for a ",
                             DTypePythonName(tensor_->dtype()));
    DispatchDType(tensor_->dtype(), RealTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      s = ParseNumber(v, &tensor_->data<T>()[next_]);
    });
    DispatchDType(tensor_->dtype(), ComplexTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      typename T::value_type real{};
      s = ParseNumber(v, &real);
      tensor_->data<T>()[next_] = real;
    });
    if (tensor_->dtype() == DType::kBool) {
      s = v.kind == Kind::kBool ? OkStatus() : InvalidArgument("");
      tensor_->data<bool>()[next_] = v.text == "true";
    } else if (tensor_->dtype() == DType::kString) {
      s = ParseBytes(v, &tensor_->data<std::string>()[next_]);
    }
    ++next_;
    if (s.code() != absl::StatusCode::kInvalidArgument) return s;
    return InvalidArgument("expected a ", DTypePythonName(tensor_->dtype()),
                           ", got ", ShownElement(v));
  }

  Tensor* const tensor_;
  int64_t next_ = 0;
};

}  // namespace

StatusOr<Tensor> TensorFromJson(const JsonValue& value, DType dtype) {
  HR_ASSIGN_OR_RETURN(const Shape shape, ShapeOfLists(value));
  HR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape));
  HR_RETURN_IF_ERROR(ElementReader(&tensor).Read(value, 0));
  return tensor;
}

}  // namespace headrace::command
