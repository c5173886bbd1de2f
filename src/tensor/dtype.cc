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

#define HR_ROW(name, python, size, kind) \
  { name, python, name "_ref", python "_ref", size, kind }
constexpr Row kRows[] = {
    HR_ROW("invalid", "invalid", 0, 'x'),
    HR_ROW("float", "float32", 4, 'f'),
    HR_ROW("double", "float64", 8, 'f'),
    HR_ROW("int32", "int32", 4, 'i'),
    HR_ROW("uint8", "uint8", 1, 'u'),
    HR_ROW("int16", "int16", 2, 'i'),
    HR_ROW("int8", "int8", 1, 'i'),
    HR_ROW("string", "string", sizeof(std::string), 'o'),
    HR_ROW("complex64", "complex64", 8, 'c'),
    HR_ROW("int64", "int64", 8, 'i'),
    HR_ROW("bool", "bool", 1, 'b'),
    HR_ROW("qint8", "qint8", 1, 'q'),
    HR_ROW("quint8", "quint8", 1, 'q'),
    HR_ROW("qint32", "qint32", 4, 'q'),
    HR_ROW("bfloat16", "bfloat16", 2, 'f'),
    HR_ROW("qint16", "qint16", 2, 'q'),
    HR_ROW("quint16", "quint16", 2, 'q'),
    HR_ROW("uint16", "uint16", 2, 'u'),
    HR_ROW("complex128", "complex128", 16, 'c'),
    HR_ROW("half", "float16", 2, 'f'),
    HR_ROW("resource", "resource", sizeof(ResourceHandle), 'o'),
    HR_ROW("variant", "variant", sizeof(Variant), 'o'),
    HR_ROW("uint32", "uint32", 4, 'u'),
    HR_ROW("uint64", "uint64", 8, 'u'),
    HR_ROW("float8_e5m2", "float8_e5m2", 1, 'f'),
    HR_ROW("float8_e4m3fn", "float8_e4m3fn", 1, 'f'),
    HR_ROW("float8_e4m3fnuz", "float8_e4m3fnuz", 1, 'f'),
    HR_ROW("float8_e4m3b11fnuz", "float8_e4m3b11fnuz", 1, 'f'),
    HR_ROW("float8_e5m2fnuz", "float8_e5m2fnuz", 1, 'f'),
    HR_ROW("int4", "int4", 1, 'i'),
    HR_ROW("uint4", "uint4", 1, 'u'),
    HR_ROW("int2", "int2", 1, 'i'),
    HR_ROW("uint2", "uint2", 1, 'u'),
};
#undef HR_ROW
constexpr int kRowCount = sizeof(kRows) / sizeof(kRows[0]);

const Row& RowOf(DType dtype) {
  int n = static_cast<int>(BaseType(dtype));
  return kRows[n < kRowCount ? n : 0];
}

}  // namespace

size_t DTypeSize(DType dtype) { return RowOf(dtype).size; }
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
