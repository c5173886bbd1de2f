#include "tensor/dtype.h"

#include "tensor/variant.h"

namespace headrace {
namespace {

struct Row {
  const char* name;
  const char* python_name;
  const char* ref_name;
  const char* python_ref_name;
  uint8_t size;
  char kind;  // f float, c complex, i int, u uint, q quantized, b bool, o other
};

constexpr Row kRows[] = {
    {"invalid", "invalid", "invalid_ref", "invalid_ref", 0, 'x'},
    {"float", "float32", "float_ref", "float32_ref", 4, 'f'},
    {"double", "float64", "double_ref", "float64_ref", 8, 'f'},
    {"int32", "int32", "int32_ref", "int32_ref", 4, 'i'},
    {"uint8", "uint8", "uint8_ref", "uint8_ref", 1, 'u'},
    {"int16", "int16", "int16_ref", "int16_ref", 2, 'i'},
    {"int8", "int8", "int8_ref", "int8_ref", 1, 'i'},
    {"string", "string", "string_ref", "string_ref", sizeof(std::string), 'o'},
    {"complex64", "complex64", "complex64_ref", "complex64_ref", 8, 'c'},
    {"int64", "int64", "int64_ref", "int64_ref", 8, 'i'},
    {"bool", "bool", "bool_ref", "bool_ref", 1, 'b'},
    {"qint8", "qint8", "qint8_ref", "qint8_ref", 1, 'q'},
    {"quint8", "quint8", "quint8_ref", "quint8_ref", 1, 'q'},
    {"qint32", "qint32", "qint32_ref", "qint32_ref", 4, 'q'},
    {"bfloat16", "bfloat16", "bfloat16_ref", "bfloat16_ref", 2, 'f'},
    {"qint16", "qint16", "qint16_ref", "qint16_ref", 2, 'q'},
    {"quint16", "quint16", "quint16_ref", "quint16_ref", 2, 'q'},
    {"uint16", "uint16", "uint16_ref", "uint16_ref", 2, 'u'},
    {"complex128", "complex128", "complex128_ref", "complex128_ref", 16, 'c'},
    {"half", "float16", "half_ref", "float16_ref", 2, 'f'},
    {"resource", "resource", "resource_ref", "resource_ref",
     sizeof(ResourceHandle), 'o'},
    {"variant", "variant", "variant_ref", "variant_ref", sizeof(Variant), 'o'},
    {"uint32", "uint32", "uint32_ref", "uint32_ref", 4, 'u'},
    {"uint64", "uint64", "uint64_ref", "uint64_ref", 8, 'u'},
    {"float8_e5m2", "float8_e5m2", "float8_e5m2_ref", "float8_e5m2_ref", 1,
     'f'},
    {"float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn_ref", "float8_e4m3fn_ref",
     1, 'f'},
    {"float8_e4m3fnuz", "float8_e4m3fnuz", "float8_e4m3fnuz_ref",
     "float8_e4m3fnuz_ref", 1, 'f'},
    {"float8_e4m3b11fnuz", "float8_e4m3b11fnuz", "float8_e4m3b11fnuz_ref",
     "float8_e4m3b11fnuz_ref", 1, 'f'},
    {"float8_e5m2fnuz", "float8_e5m2fnuz", "float8_e5m2fnuz_ref",
     "float8_e5m2fnuz_ref", 1, 'f'},
    {"int4", "int4", "int4_ref", "int4_ref", 1, 'i'},
    {"uint4", "uint4", "uint4_ref", "uint4_ref", 1, 'u'},
    {"int2", "int2", "int2_ref", "int2_ref", 1, 'i'},
    {"uint2", "uint2", "uint2_ref", "uint2_ref", 1, 'u'},
};
constexpr int kRowCount = sizeof(kRows) / sizeof(kRows[0]);

const Row& RowOf(DType dtype) {
  int n = static_cast<int>(BaseType(dtype));
  return kRows[n < kRowCount ? n : 0];
}

}  // namespace

[[gnu::hot]] size_t DTypeSize(DType dtype) { return RowOf(dtype).size; }
StringView DTypeName(DType dtype) {
  return IsRef(dtype) ? RowOf(dtype).ref_name : RowOf(dtype).name;
}
StringView DTypePythonName(DType dtype) {
  return IsRef(dtype) ? RowOf(dtype).python_ref_name : RowOf(dtype).python_name;
}

StatusOr<DType> DTypeFromName(StringView name) {
  for (int i = 1; i < kRowCount; ++i) {
    const Row& row = kRows[i];
    DType dtype = static_cast<DType>(i);
    if (name == row.name || name == row.python_name) return dtype;
    if (name == row.ref_name || name == row.python_ref_name) {
      return RefType(dtype);
    }
  }
  return InvalidArgument("'", name, "' is not the name of a dtype");
}

bool DTypeIsValid(int number) {
  if (number > kRefOffset) number -= kRefOffset;
  return number > 0 && number < kRowCount;
}

bool IsFloating(DType d) { return RowOf(d).kind == 'f'; }
bool IsComplex(DType d) { return RowOf(d).kind == 'c'; }
bool IsInteger(DType d) { return RowOf(d).kind == 'i' || RowOf(d).kind == 'u'; }
bool IsUnsigned(DType d) { return RowOf(d).kind == 'u'; }
bool IsQuantized(DType d) { return RowOf(d).kind == 'q'; }
bool IsPlain(DType d) {
  char kind = RowOf(d).kind;
  return kind != 'o' && kind != 'x';
}
DType RealType(DType d) {
  if (d == DType::kComplex64) return DType::kFloat;
  if (d == DType::kComplex128) return DType::kDouble;
  return d;
}

}  // namespace headrace
