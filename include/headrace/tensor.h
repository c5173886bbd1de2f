// Tensors: element types, shapes, values and arithmetic (tf.Tensor, tf.DType).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/error.h"
#include "headrace/export.h"

namespace headrace::tf {

// Element types; the numbers are those of upstream's DataType enum, which
// graphs and checkpoints hold. kInvalid is no type: it stands for "none given".
enum class DType : uint8_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5m2 = 24,
  kFloat8E4m3fn = 25,
  kFloat8E4m3fnuz = 26,
  kFloat8E4m3b11fnuz = 27,
  kFloat8E5m2fnuz = 28,
  kInt4 = 29,
  kUint4 = 30,
  kInt2 = 31,
  kUint2 = 32,
};
// The name that Python prints: "float32", "int64", "string".
HR_API std::string DTypeName(DType dtype);

template <typename T>
// The element type of a C++ type; kInvalid for types that no tensor can be read
// as or made of by that type (half, bfloat16, complex and quantized numbers
// among them: Tensor::Copy takes their bytes).
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUint8;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUint16;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUint32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kUint64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, std::string>) return DType::kString;
  return DType::kInvalid;
}

// The sizes of the axes, the outermost first; no sizes is a scalar. -1 is an
// unknown size (inside traced functions and in specs); known_rank false means
// that not even the number of axes is known. No check is made here: calls that
// take a shape throw kInvalidArgument for sizes under -1.
struct TensorShape {
  std::vector<int64_t> dims;
  bool known_rank = true;

  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> d) : dims(d) {}
  TensorShape(std::vector<int64_t> d) : dims(std::move(d)) {}  // NOLINT
  // -1 where the rank is unknown.
  int rank() const { return known_rank ? static_cast<int>(dims.size()) : -1; }
  // Not checked: `i` is in [0, rank()).
  int64_t operator[](int i) const { return dims[i]; }
  bool operator==(const TensorShape&) const = default;
  // "(2, 3)", "(3,)", "()", with None for unknown sizes; "<unknown>".
  HR_API std::string ToString() const;
};

namespace internal {
struct Access;
}

// An immutable multi-dimensional array, or, while a function is traced, its
// place in the graph. A handle: copies are cheap and share the elements. Safe
// to read from several threads at once, as is every copy; a handle that one
// thread assigns to is not to be read by another. Errors of all ops are thrown
// as Error. Every member but bool, assignment and mask throws kInvalidArgument
// for a null handle.
class HR_API Tensor {
 public:
  Tensor() = default;  // none; using it throws
  // Scalars. bool is DType::kBool, int is kInt32, double is kFloat64 (not the
  // other operand's dtype: Operand below does that).
  Tensor(float value);               // NOLINT
  Tensor(double value);              // NOLINT
  Tensor(int32_t value);             // NOLINT
  Tensor(int64_t value);             // NOLINT
  Tensor(bool value);                // NOLINT
  Tensor(const char* value);         // NOLINT
  Tensor(const std::string& value);  // NOLINT
  Tensor(const Tensor& o);
  Tensor(Tensor&& o) noexcept
      : rep_(std::exchange(o.rep_, nullptr)), mask_(std::move(o.mask_)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(rep_, o.rep_);
    std::swap(mask_, o.mask_);
    return *this;
  }
  ~Tensor();

  // Copies `values` (row-major), whose count must be that of `shape`.
  template <typename T>
  // Copies `values` (row-major). Throws kInvalidArgument where `shape` is not
  // fully known or has another number of elements, and for types that are no
  // element type (DTypeOf).
  static Tensor From(const std::vector<T>& values, const TensorShape& shape) {
    if constexpr (std::is_same_v<T, bool>) {
      std::vector<uint8_t> bytes(values.begin(), values.end());
      return Copy(DType::kBool, shape, bytes.data(), bytes.size());
    } else {
      return Copy(DTypeOf<T>(), shape, values.data(), values.size());
    }
  }
  // A vector of the values.
  template <typename T>
  static Tensor From(const std::vector<T>& values) {
    return From(values, TensorShape{static_cast<int64_t>(values.size())});
  }
  // Copies `count` elements from `elements`, row-major: std::string objects for
  // kString, else elements of the dtype's size, complex numbers as two floats;
  // null is allowed for no elements. Throws kInvalidArgument as From does and
  // for kResource and kVariant, kResourceExhausted where there is no memory.
  static Tensor Copy(DType dtype, const TensorShape& shape,
                     const void* elements, size_t count);

  // Whether the handle is more than null.
  explicit operator bool() const { return rep_ != nullptr; }
  DType dtype() const;
  // Partly or wholly unknown for tensors of a traced function.
  TensorShape shape() const;
  // Throws kFailedPrecondition where the shape is not fully known.
  int64_t num_elements() const;
  // True inside a traced function: there are no elements to look at.
  bool is_symbolic() const;
  // The elements, valid while a handle lives. Throws if the dtype is another
  // one or the tensor is symbolic.
  template <typename T>
  // The elements, row-major, valid while a handle lives. Nothing may write
  // through them: other tensors may share the memory. Throws kInvalidArgument
  // where T is not the tensor's type, kFailedPrecondition for a symbolic
  // tensor.
  const T* data() const {
    return static_cast<const T*>(Data(DTypeOf<T>()));
  }
  // The one element; throws if there are more or fewer.
  template <typename T>
  // The one element, of a tensor of any rank; throws kInvalidArgument if there
  // are more or fewer, and what data() throws.
  T item() const {
    CheckScalar();
    return *data<T>();
  }
  template <typename T>
  // A copy of the elements, row-major; throws what data() throws.
  std::vector<T> vector() const {
    const T* p = data<T>();
    return std::vector<T>(p, p + num_elements());
  }
  // "tf.Tensor([1 2], shape=(2,), dtype=int32)": the frame is Python's,
  // elements stand as tf.print writes them. Tensors of more than 1000 elements
  // show "..." for them, symbolic ones "<symbolic>".
  std::string ToString() const;

  // Element by element; kInvalidArgument for dtypes without a negative.
  Tensor operator-() const;

  // What layers tell one another about this handle: a bool tensor, [batch,
  // steps], that is false where steps only fill up (layers::Embedding with
  // mask_zero, layers::Masking); null where there is none. Copies keep it,
  // results of ops have none.
  Tensor mask() const { return mask_ ? *mask_ : Tensor(); }
  // The same tensor with that mask; without any for a null one.
  Tensor with_mask(const Tensor& mask) const {
    Tensor out = *this;
    out.mask_ = mask ? std::make_shared<const Tensor>(mask) : nullptr;
    return out;
  }

 private:
  friend struct internal::Access;
  const void* Data(DType dtype) const;
  void CheckScalar() const;
  void* rep_ = nullptr;  // a headrace::Value
  std::shared_ptr<const Tensor> mask_;
};

// An operand of + - * / and comparisons: a tensor (or what converts to one), or
// a plain number, which takes the other operand's dtype; two numbers are
// float32.
class Operand {
 public:
  Operand(const Tensor& t) : tensor_(t) {}  // NOLINT
  template <typename N, typename = std::enable_if_t<std::is_arithmetic_v<N>>>
  Operand(N number)  // NOLINT
      : number_(static_cast<double>(number)), is_number_(true) {}
  template <typename V, typename = std::enable_if_t<!std::is_arithmetic_v<V>>,
            typename = decltype(std::declval<const V&>().value())>
  Operand(const V& variable) : tensor_(variable.value()) {}  // NOLINT

  const Tensor& tensor() const { return tensor_; }
  bool is_number() const { return is_number_; }
  double number() const { return number_; }

 private:
  Tensor tensor_;
  double number_ = 0;
  bool is_number_ = false;
};

// Element by element, broadcasting as NumPy does; comparisons give bool
// tensors. `/` is true division (RealDiv): kNotFound for integers. Throw
// kInvalidArgument for operands of different dtypes and for shapes that do not
// broadcast. There is no operator==: it would be read as a comparison of
// handles (tf::Equal compares elements).
HR_API Tensor operator+(const Operand& a, const Operand& b);
HR_API Tensor operator-(const Operand& a, const Operand& b);
HR_API Tensor operator*(const Operand& a, const Operand& b);
HR_API Tensor operator/(const Operand& a, const Operand& b);
HR_API Tensor operator<(const Operand& a, const Operand& b);
HR_API Tensor operator<=(const Operand& a, const Operand& b);
HR_API Tensor operator>(const Operand& a, const Operand& b);
HR_API Tensor operator>=(const Operand& a, const Operand& b);

}  // namespace headrace::tf
