#include "headrace/tensor.h"

#include <charconv>
#include <cstring>

#include "absl/strings/escaping.h"
#include "cc/access.h"
#include "op/emitter.h"

namespace headrace::tf {
namespace {

using internal::Access;
using internal::CallOp1;
using internal::Check;
using internal::Core;
using Core_ = headrace::Tensor;

// NumPy's threshold, above which Python prints "..." as well.
constexpr int64_t kMostPrinted = 1000;

template <typename T>
Tensor ScalarOf(T v) {
  return Access::Wrap(Value(Core_::Scalar<T>(std::move(v))));
}

std::string Element(const Core_& t, int64_t i) {
  std::string text = "?";
  DispatchDType(t.dtype(), NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T v = t.data<T>()[i];
    if constexpr (std::is_same_v<T, complex64> ||
                  std::is_same_v<T, complex128>) {
      text = absl::StrCat(v.real(), v.imag() < 0 ? "" : "+", v.imag(), "j");
    } else if constexpr (std::is_integral_v<T>) {
      text = absl::StrCat(static_cast<int64_t>(v));
    } else {
      // Shortest form that reads back as the same number.
      using Number =
          std::conditional_t<std::is_same_v<T, double>, double, float>;
      // The shortest form of a double has 24 characters at most.
      char digits[40];
      auto end =
          std::to_chars(digits, digits + sizeof digits, static_cast<Number>(v))
              .ptr;
      text = std::string(digits, end);
    }
  });
  if (t.dtype() == headrace::DType::kBool) {
    text = t.data<bool>()[i] ? "True" : "False";
  } else if (t.dtype() == headrace::DType::kString) {
    text = absl::StrCat("b'", absl::CEscape(t.data<std::string>()[i]), "'");
  }
  return text;
}

std::string Elements(const Core_& t, int dim, int64_t* next) {
  if (dim == t.rank()) return Element(t, (*next)++);
  std::string out = "[";
  for (int64_t i = 0; i < t.dim(dim); ++i) {
    if (i) out += dim + 1 == t.rank() ? " " : "\n" + std::string(dim + 1, ' ');
    out += Elements(t, dim + 1, next);
  }
  return out + "]";
}

// Both operands as values of one dtype.
std::vector<Value> Pair(const Operand& a, const Operand& b) {
  auto number = [](const Operand& n, const Operand& like) {
    // The other operand's dtype; between two numbers Python's default for
    // floats.
    headrace::DType d = like.is_number() ? headrace::DType::kFloat
                                         : Core(like.tensor().dtype());
    OpScope scope;  // a constant also of a function being traced
    Value v = scope.Scalar(d, n.number());
    Check(scope.status());
    return v;
  };
  return {a.is_number() ? number(a, b) : Access::ValueOf(a.tensor()),
          b.is_number() ? number(b, a) : Access::ValueOf(b.tensor())};
}

}  // namespace

std::string DTypeName(DType dtype) {
  return std::string(DTypePythonName(Core(dtype)));
}

std::string TensorShape::ToString() const {
  if (!known_rank) return "<unknown>";
  std::string out = "(";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    out += dims[i] < 0 ? "None" : std::to_string(dims[i]);
  }
  // As Python prints tuples.
  return out + (dims.size() == 1 ? ",)" : ")");
}

Tensor::Tensor(float v) : Tensor(ScalarOf(v)) {}
Tensor::Tensor(double v) : Tensor(ScalarOf(v)) {}
Tensor::Tensor(int32_t v) : Tensor(ScalarOf(v)) {}
Tensor::Tensor(int64_t v) : Tensor(ScalarOf(v)) {}
Tensor::Tensor(bool v) : Tensor(ScalarOf(v)) {}
Tensor::Tensor(const char* v) : Tensor(ScalarOf(std::string(v))) {}
Tensor::Tensor(const std::string& v) : Tensor(ScalarOf(v)) {}

Tensor::Tensor(const Tensor& o) : mask_(o.mask_) {
  // rep_ is a Value under another name: the public header cannot include the
  // engine's.
  new (&rep_) Value(*reinterpret_cast<const Value*>(&o.rep_));
}
Tensor::~Tensor() { reinterpret_cast<Value*>(&rep_)->~Value(); }

Tensor Tensor::Copy(DType dtype, const TensorShape& shape, const void* elements,
                    size_t count) {
  headrace::Shape s = Core(shape);
  // Before memory is taken: the caller's array is read for as many elements.
  if (!s.fully_known() || s.num_elements() != static_cast<int64_t>(count) ||
      dtype == DType::kInvalid) {
    throw Error(
        ErrorCode::kInvalidArgument,
        absl::StrCat(count, " elements cannot fill a ", DTypeName(dtype),
                     " tensor of shape ", shape.ToString()));
  }
  Core_ t = Check(Core_::Allocate(Core(dtype), s));
  if (dtype == DType::kString) {
    std::copy_n(static_cast<const std::string*>(elements), count,
                t.data<std::string>());
  } else if (IsPlain(Core(dtype))) {
    // An empty tensor may have no memory to point at.
    if (count) std::memcpy(t.raw(), elements, t.bytes());
  } else {
    throw Error(ErrorCode::kInvalidArgument,
                "a " + DTypeName(dtype) + " tensor cannot be made of elements");
  }
  return Access::Wrap(Value(std::move(t)));
}

DType Tensor::dtype() const {
  return internal::Public(Access::ValueOf(*this).dtype());
}
TensorShape Tensor::shape() const {
  return internal::Public(Access::ValueOf(*this).shape());
}
int64_t Tensor::num_elements() const {
  const headrace::Shape& s = Access::ValueOf(*this).shape();
  if (!s.fully_known()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "the shape " + shape().ToString() + " is not fully known");
  }
  return s.num_elements();
}
bool Tensor::is_symbolic() const {
  return Access::ValueOf(*this).is_symbolic();
}

const void* Tensor::Data(DType dtype) const {
  const Value& v = Access::ValueOf(*this);
  if (v.is_symbolic()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "a tensor of a traced function has no elements yet");
  }
  if (internal::Public(v.dtype()) != dtype) {
    throw Error(
        ErrorCode::kInvalidArgument,
        absl::StrCat("the tensor is ", DTypeName(internal::Public(v.dtype())),
                     ", asked for as ", DTypeName(dtype)));
  }
  return v.tensor().raw();
}

void Tensor::CheckScalar() const {
  if (num_elements() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                "item() of a tensor of shape " + shape().ToString());
  }
}

std::string Tensor::ToString() const {
  const Value& v = Access::ValueOf(*this);
  std::string tail = absl::StrCat(", shape=", shape().ToString(),
                                  ", dtype=", DTypeName(dtype()), ")");
  if (v.is_symbolic()) return "tf.Tensor(<symbolic>" + tail;
  const Core_& t = v.tensor();
  if (t.num_elements() > kMostPrinted) return "tf.Tensor(..." + tail;
  int64_t next = 0;
  return absl::StrCat("tf.Tensor(", t.rank() > 1 ? "\n" : "",
                      Elements(t, 0, &next), tail);
}

Tensor Tensor::operator-() const {
  return CallOp1("Neg", {Access::ValueOf(*this)});
}
Tensor operator+(const Operand& a, const Operand& b) {
  return CallOp1("AddV2", Pair(a, b));
}
Tensor operator-(const Operand& a, const Operand& b) {
  return CallOp1("Sub", Pair(a, b));
}
Tensor operator*(const Operand& a, const Operand& b) {
  return CallOp1("Mul", Pair(a, b));
}
Tensor operator/(const Operand& a, const Operand& b) {
  return CallOp1("RealDiv", Pair(a, b));
}
Tensor operator<(const Operand& a, const Operand& b) {
  return CallOp1("Less", Pair(a, b));
}
Tensor operator<=(const Operand& a, const Operand& b) {
  return CallOp1("LessEqual", Pair(a, b));
}
Tensor operator>(const Operand& a, const Operand& b) {
  return CallOp1("Greater", Pair(a, b));
}
Tensor operator>=(const Operand& a, const Operand& b) {
  return CallOp1("GreaterEqual", Pair(a, b));
}

}  // namespace headrace::tf
