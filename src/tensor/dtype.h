// Element types. The numbers are upstream's DataType enum, so a DType is
// written to files and protos as it stands.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/numbers/float_types.h"
#include "base/status.h"

namespace headrace {

enum class DType : uint8_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
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
  kHalf = 19,
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
  // A reference to a variable of type T (graphs of TensorFlow 1) is T + 100.
};
// Upstream's numbers of reference types are those of their values and 100.
inline constexpr int kRefOffset = 100;

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

class Variant;          // tensor/variant.h
struct ResourceHandle;  // tensor/variant.h

// Storage of quantized types; the scale travels beside the tensor.
struct qint8 {
  int8_t value;
};
struct quint8 {
  uint8_t value;
};
struct qint16 {
  int16_t value;
};
struct quint16 {
  uint16_t value;
};
struct qint32 {
  int32_t value;
};

// Bytes an element takes in a buffer; 0 for kInvalid.
size_t DTypeSize(DType dtype);
// The name used in signatures and messages: "float", "int32", "float_ref".
StringView DTypeName(DType dtype);
// The name Python shows: "float32", "int32", "float32_ref".
StringView DTypePythonName(DType dtype);
// Either name, or InvalidArgument.
StatusOr<DType> DTypeFromName(StringView name);
// False for kInvalid and numbers the enum does not have.
bool DTypeIsValid(int number);

inline bool IsRef(DType d) { return static_cast<int>(d) > kRefOffset; }
inline DType BaseType(DType d) {
  return IsRef(d) ? static_cast<DType>(static_cast<int>(d) - kRefOffset) : d;
}
inline DType RefType(DType d) {
  return IsRef(d) ? d : static_cast<DType>(static_cast<int>(d) + kRefOffset);
}
bool IsFloating(DType d);  // float8 kinds to double
bool IsComplex(DType d);
bool IsInteger(DType d);  // signed or unsigned, not quantized, not bool
bool IsUnsigned(DType d);
bool IsQuantized(DType d);
// True when elements are plain bytes: not string, resource or variant.
bool IsPlain(DType d);
// True when a gradient may flow through values of the type.
inline bool IsDifferentiable(DType d) {
  return IsFloating(d) || IsComplex(d) || d == DType::kVariant ||
         d == DType::kResource;
}
// float of complex64, double of complex128; the type itself otherwise.
DType RealType(DType d);

template <typename T>
struct DTypeOfImpl;
// A macro, as specialisations of a template cannot be rows of an array.
#define HR_DTYPE_OF(T, D)                    \
  template <>                                \
  struct DTypeOfImpl<T> {                    \
    static constexpr DType value = DType::D; \
  };
HR_DTYPE_OF(float, kFloat)
HR_DTYPE_OF(double, kDouble)
HR_DTYPE_OF(int32_t, kInt32)
HR_DTYPE_OF(uint8_t, kUint8)
HR_DTYPE_OF(int16_t, kInt16)
HR_DTYPE_OF(int8_t, kInt8)
HR_DTYPE_OF(std::string, kString)
HR_DTYPE_OF(complex64, kComplex64)
HR_DTYPE_OF(int64_t, kInt64)
HR_DTYPE_OF(bool, kBool)
HR_DTYPE_OF(qint8, kQint8)
HR_DTYPE_OF(quint8, kQuint8)
HR_DTYPE_OF(qint32, kQint32)
HR_DTYPE_OF(bfloat16, kBfloat16)
HR_DTYPE_OF(qint16, kQint16)
HR_DTYPE_OF(quint16, kQuint16)
HR_DTYPE_OF(uint16_t, kUint16)
HR_DTYPE_OF(complex128, kComplex128)
HR_DTYPE_OF(half, kHalf)
HR_DTYPE_OF(ResourceHandle, kResource)
HR_DTYPE_OF(Variant, kVariant)
HR_DTYPE_OF(uint32_t, kUint32)
HR_DTYPE_OF(uint64_t, kUint64)
HR_DTYPE_OF(float8_e5m2, kFloat8E5m2)
HR_DTYPE_OF(float8_e4m3fn, kFloat8E4m3fn)
HR_DTYPE_OF(float8_e4m3fnuz, kFloat8E4m3fnuz)
HR_DTYPE_OF(float8_e4m3b11fnuz, kFloat8E4m3b11fnuz)
HR_DTYPE_OF(float8_e5m2fnuz, kFloat8E5m2fnuz)
HR_DTYPE_OF(int4, kInt4)
HR_DTYPE_OF(uint4, kUint4)
HR_DTYPE_OF(int2, kInt2)
HR_DTYPE_OF(uint2, kUint2)
#undef HR_DTYPE_OF
template <typename T>
inline constexpr DType DTypeOf = DTypeOfImpl<std::remove_cv_t<T>>::value;

template <typename T>
struct TypeTag {
  using type = T;
};
template <typename... Ts>
struct TypeList {};

// Calls f(TypeTag<T>{}) for the T of the list that `dtype` names and returns
// true; false when the list has no such type.
template <typename... Ts, typename F>
bool DispatchDType(DType dtype, TypeList<Ts...>, F&& f) {
  return ((DTypeOf<Ts> == dtype ? (f(TypeTag<Ts>{}), true) : false) || ...);
}

using FloatTypes = TypeList<float, double, half, bfloat16>;
using ComplexTypes = TypeList<complex64, complex128>;
using IntTypes = TypeList<int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t,
                          uint32_t, uint64_t>;
using RealTypes =
    TypeList<float, double, int32_t, int64_t, half, bfloat16, int8_t, int16_t,
             uint8_t, uint16_t, uint32_t, uint64_t>;
using NumberTypes = TypeList<float, double, int32_t, int64_t, half, bfloat16,
                             complex64, complex128, int8_t, int16_t, uint8_t,
                             uint16_t, uint32_t, uint64_t>;
using IndexTypes = TypeList<int32_t, int64_t>;

}  // namespace headrace
