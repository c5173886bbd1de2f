// Tensors.
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

// Element types; the numbers are TensorFlow's DataType enum.
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
// "float32", "int64", ...
HR_API std::string DTypeName(DType dtype);

template <typename T>
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

// A list of sizes. -1 is an unknown size (inside traced functions and for
// TensorSpecs); `known_rank` false means nothing is known.
struct TensorShape {
  std::vector<int64_t> dims;
  bool known_rank = true;

  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> d) : dims(d) {}
  TensorShape(std::vector<int64_t> d) : dims(std::move(d)) {}  // NOLINT
  int rank() const { return known_rank ? static_cast<int>(dims.size()) : -1; }
  int64_t operator[](int i) const { return dims[i]; }
  bool operator==(const TensorShape&) const = default;
  HR_API std::string ToString() const;  // "(2, 3)"
};

namespace internal {
struct Access;
}

// An immutable multi-dimensional array, or, while a function is traced, its
// place in the graph. A handle: copies are cheap and share the elements.
// Thread-safe to read. Errors of all ops are thrown as Error.
class HR_API Tensor {
 public:
  Tensor() = default;  // none; using it throws
  // Scalars. bool is DType::kBool, int is kInt32, double is kFloat64.
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
  // Copies `count` elements (std::string objects for kString).
  static Tensor Copy(DType dtype, const TensorShape& shape,
                     const void* elements, size_t count);

  explicit operator bool() const { return rep_ != nullptr; }
  DType dtype() const;
  TensorShape shape() const;
  int64_t num_elements() const;
  // True inside a traced function: there are no elements to look at.
  bool is_symbolic() const;
  // The elements, valid while a handle lives. Throws if the dtype is another
  // one or the tensor is symbolic.
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(Data(DTypeOf<T>()));
  }
  // The one element; throws if there are more or fewer.
  template <typename T>
  T item() const {
    CheckScalar();
    return *data<T>();
  }
  template <typename T>
  std::vector<T> vector() const {
    const T* p = data<T>();
    return std::vector<T>(p, p + num_elements());
  }
  // As Python prints it, elements included (at most 1000 of them).
  std::string ToString() const;

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

// An operand of + - * / and comparisons: a tensor (or what converts to one),
// or a plain number, which takes the other operand's dtype.
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

// Element by element, broadcasting as NumPy does.
HR_API Tensor operator+(const Operand& a, const Operand& b);
HR_API Tensor operator-(const Operand& a, const Operand& b);
HR_API Tensor operator*(const Operand& a, const Operand& b);
HR_API Tensor operator/(const Operand& a, const Operand& b);
HR_API Tensor operator<(const Operand& a, const Operand& b);
HR_API Tensor operator<=(const Operand& a, const Operand& b);
HR_API Tensor operator>(const Operand& a, const Operand& b);
HR_API Tensor operator>=(const Operand& a, const Operand& b);

}  // namespace headrace::tf
