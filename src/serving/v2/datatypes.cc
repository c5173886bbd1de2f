#include "serving/v2/datatypes.h"

#include <bit>
#include <cstring>
#include <limits>
#include <memory>

namespace headrace::serving {
namespace {

static_assert(std::endian::native == std::endian::little,
              "raw bytes are copied as they are");

struct Named {
  DType dtype;
  StringView name;
};
constexpr Named kDatatypes[] = {
    {DType::kBool, "BOOL"},     {DType::kUint8, "UINT8"},
    {DType::kUint16, "UINT16"}, {DType::kUint32, "UINT32"},
    {DType::kUint64, "UINT64"}, {DType::kInt8, "INT8"},
    {DType::kInt16, "INT16"},   {DType::kInt32, "INT32"},
    {DType::kInt64, "INT64"},   {DType::kHalf, "FP16"},
    {DType::kFloat, "FP32"},    {DType::kDouble, "FP64"},
    {DType::kString, "BYTES"},  {DType::kBfloat16, "BF16"},
};

// Before an element of BYTES.
constexpr size_t kLengthBytes = 4;
// Shorter contents cost less to copy than to keep; and strings this short may
// hold their bytes in themselves, unaligned.
constexpr size_t kWorthKeeping = 4096;

// Any byte but zero is true; elements are 0 or 1.
void MakeBools(Tensor& t) {
  uint8_t* p = static_cast<uint8_t*>(t.raw());
  for (int64_t i = 0; i < t.num_elements(); ++i) p[i] = p[i] != 0;
}

Status CheckRawSize(DType dtype, const Shape& shape, size_t bytes,
                    StringView what) {
  int64_t wanted = 0;
  if (!MultiplyChecked(shape.num_elements(), DTypeSize(dtype), &wanted) ||
      static_cast<uint64_t>(wanted) != bytes) {
    return InvalidArgument(what, " has ", bytes, " bytes, where ",
                           DatatypeOf(dtype), " of shape ", shape, " has ",
                           wanted);
  }
  return OkStatus();
}

Status BadElement(StringView what, int64_t i) {
  return InvalidArgument(what, ": its bytes end within element ", i);
}

StatusOr<Tensor> StringsFromRaw(const Shape& shape, StringView bytes,
                                StringView what) {
  const int64_t n = shape.num_elements();
  if (n > static_cast<int64_t>(bytes.size() / kLengthBytes)) {
    return InvalidArgument(what, " has ", bytes.size(),
                           " bytes, too few for BYTES of shape ", shape);
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(DType::kString, shape));
  for (int64_t i = 0; i < n; ++i) {
    uint32_t length;
    if (bytes.size() < kLengthBytes) return BadElement(what, i);
    std::memcpy(&length, bytes.data(), kLengthBytes);
    bytes.remove_prefix(kLengthBytes);
    if (bytes.size() < length) return BadElement(what, i);
    t.data<std::string>()[i].assign(bytes.data(), length);
    bytes.remove_prefix(length);
  }
  if (!bytes.empty()) {
    return InvalidArgument(what, " has ", bytes.size(),
                           " bytes after its last element");
  }
  return t;
}

}  // namespace

StringView DatatypeOf(DType dtype) {
  for (const Named& d : kDatatypes) {
    if (d.dtype == dtype) return d.name;
  }
  return {};
}

StatusOr<DType> DTypeOfDatatype(StringView datatype, StringView what) {
  for (const Named& d : kDatatypes) {
    if (d.name == datatype) return d.dtype;
  }
  return InvalidArgument(what, ": there is no datatype '", datatype, "'");
}

bool IsRawOnly(DType dtype) {
  return dtype == DType::kHalf || dtype == DType::kBfloat16;
}

StatusOr<Shape> ShapeOfSizes(absl::Span<const int64_t> sizes, StringView what) {
  StatusOr<Shape> shape = Shape::Make(sizes);
  if (!shape.ok()) {
    return InvalidArgument(what, ": ", shape.status().message());
  }
  return shape;
}

StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape,
                               StringView bytes, StringView what) {
  if (dtype == DType::kString) return StringsFromRaw(shape, bytes, what);
  HR_RETURN_IF_ERROR(CheckRawSize(dtype, shape, bytes.size(), what));
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  if (!bytes.empty()) std::memcpy(t.raw(), bytes.data(), bytes.size());
  if (dtype == DType::kBool) MakeBools(t);
  return t;
}

StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape,
                               std::string&& bytes, StringView what) {
  if (bytes.size() < kWorthKeeping || dtype == DType::kString ||
      dtype == DType::kBool) {
    return TensorFromRaw(dtype, shape, StringView(bytes), what);
  }
  HR_RETURN_IF_ERROR(CheckRawSize(dtype, shape, bytes.size(), what));
  auto kept = std::make_unique<std::string>(std::move(bytes));
  char* data = kept->data();
  const size_t size = kept->size();
  return Tensor::Wrap(dtype, shape, data, size, kept.release(),
                      [](void* p) { delete static_cast<std::string*>(p); });
}

StatusOr<size_t> RawSize(const Tensor& tensor, StringView what) {
  if (DatatypeOf(tensor.dtype()).empty()) {
    return Unimplemented(what, " is of type ", DTypeName(tensor.dtype()),
                         ", which the protocol has no datatype for");
  }
  if (tensor.dtype() != DType::kString) return tensor.bytes();
  size_t size = 0;
  for (const std::string& s : tensor.span<std::string>()) {
    if (s.size() > std::numeric_limits<uint32_t>::max()) {
      return ResourceExhausted(what, " has an element of ", s.size(),
                               " bytes, more than its length can say");
    }
    size += kLengthBytes + s.size();
  }
  return size;
}

void AppendRaw(const Tensor& tensor, std::string* out) {
  if (tensor.dtype() != DType::kString) {
    if (tensor.bytes() != 0) {
      out->append(static_cast<const char*>(tensor.raw()), tensor.bytes());
    }
    return;
  }
  for (const std::string& s : tensor.span<std::string>()) {
    const auto length = static_cast<uint32_t>(s.size());
    char bytes[kLengthBytes];
    std::memcpy(bytes, &length, kLengthBytes);
    out->append(bytes, kLengthBytes);
    out->append(s);
  }
}

}  // namespace headrace::serving
