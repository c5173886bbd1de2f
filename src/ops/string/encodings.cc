// EncodeBase64, DecodeBase64 (of URLs), DecodeRaw, DecodePaddedRaw.
#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "base/bools.h"
#include "ops/string/string_map.h"

namespace headrace {
namespace {

Status Encode(KernelContext& c) {
  const bool pad = c.op().bool_attr("pad");
  MapStrings<std::string>(c, [pad](const std::string& s) {
    std::string out = absl::WebSafeBase64Escape(s);
    while (pad && out.size() % 4) out += '=';
    return out;
  });
  return OkStatus();
}

HR_OP(EncodeBase64)
    .Input("input: string")
    .Output("output: string")
    .Attr("pad: bool = false")
    .Doc("Strings in web-safe base64.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Compute<Encode>);

bool IsWebSafe(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '_';
}

Status DecodeOne(StringView s, std::string* out) {
  // Up to two '=' may fill the last four characters.
  for (int i = 0; i < 2 && s.size() % 4 == (4 - i) % 4; ++i) {
    if (!absl::ConsumeSuffix(&s, "=")) break;
  }
  if (s.size() % 4 == 1) {
    return InvalidArgument("Base64 string length cannot be 1 modulo 4.");
  }
  if (!std::all_of(s.begin(), s.end(), IsWebSafe) ||
      !absl::WebSafeBase64Unescape(s, out)) {
    return InvalidArgument("Invalid character found in base64.");
  }
  return OkStatus();
}

Status DecodeBinary(KernelContext& c) {
  return MapStringsOrFail<std::string>(c, DecodeOne);
}

HR_OP(DecodeBase64)
    .Input("input: string")
    .Output("output: string")
    .Doc("Strings from web-safe base64.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Compute<DecodeBinary>);

// Turns the bytes of n elements round when they are not in this machine's
// (little endian) order.
void Reverse(char* data, int64_t n, int64_t size) {
  for (int64_t i = 0; i < n; ++i) {
    std::reverse(data + i * size, data + (i + 1) * size);
  }
}

// The size of what has its own byte order: half of a complex number.
int64_t WordSize(DType d) { return DTypeSize(d) / (IsComplex(d) ? 2 : 1); }

Status DecodeRaw(KernelContext& c) {
  const Tensor& in = c.input(0);
  const DType type = c.op().type_attr("out_type");
  const int64_t size = DTypeSize(type);
  const int64_t n = in.num_elements();
  const int64_t bytes = n ? in.data<std::string>()[0].size() : 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t other = in.data<std::string>()[i].size();
    if (other != bytes) {
      return InvalidArgument(
          "DecodeRaw requires input strings to all be the same size, but "
          "element ",
          i, " has size ", bytes, " != ", other);
    }
  }
  if (bytes % size) {
    return InvalidArgument("Input to DecodeRaw has length ", bytes,
                           " that is not a multiple of ", size,
                           ", the size of ", DTypeName(type));
  }
  Shape shape = in.shape();
  shape.AddDim(bytes / size);
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  char* out = static_cast<char*>(c.output(0).raw());
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(out + i * bytes, in.data<std::string>()[i].data(), bytes);
  }
  if (!c.op().bool_attr("little_endian")) {
    Reverse(out, n * bytes / WordSize(type), WordSize(type));
  }
  if (type == DType::kBool) MakeBools(out, n * bytes);
  return OkStatus();
}

Status DecodeRawShape(ShapeContext& c) {
  Shape s = c.input(0);
  if (!s.known_rank()) return OkStatus();
  s.AddDim(Shape::kUnknown);
  c.set_output(0, std::move(s));
  return OkStatus();
}

HR_OP(DecodeRaw)
    .Input("bytes: string")
    .Output("output: out_type")
    .Attr(
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, "
        "int64, complex64, complex128, bool, bfloat16}")
    .Attr("little_endian: bool = true")
    .Doc("The bytes of strings, all of one length, as numbers.")
    .Shape(DecodeRawShape)
    .NoGradient()
    .Cpu(ComputeOwn<DecodeRaw>);

Status DecodePaddedRaw(KernelContext& c) {
  const Tensor& in = c.input(0);
  const DType type = c.op().type_attr("out_type");
  const int64_t size = DTypeSize(type);
  if (c.input(1).rank() != 0) {
    return InvalidArgument("k must be scalar, got shape ", c.input(1).shape());
  }
  const int64_t width = c.input(1).scalar<int32_t>();
  if (width <= 0 || width % size) {
    return InvalidArgument("fixed_length (", width,
                           ") must be a multiple of the size of "
                           "out_type (",
                           size, ")");
  }
  Shape shape = in.shape();
  shape.AddDim(width / size);
  HR_ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  char* out = static_cast<char*>(c.output(0).raw());
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const std::string& s = in.data<std::string>()[i];
    const int64_t n = std::min<int64_t>(s.size(), width);
    std::memcpy(out + i * width, s.data(), n);
    std::memset(out + i * width + n, 0, width - n);
  }
  if (!c.op().bool_attr("little_endian")) {
    Reverse(out, in.num_elements() * width / size, size);
  }
  return OkStatus();
}

HR_OP(DecodePaddedRaw)
    .Input("input_bytes: string")
    .Input("fixed_length: int32")
    .Output("output: out_type")
    .Attr(
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, "
        "int64, bfloat16}")
    .Attr("little_endian: bool = true")
    .Doc("The bytes of strings, cut or filled to one length, as numbers.")
    .Shape(DecodeRawShape)
    .NoGradient()
    .Cpu(ComputeOwn<DecodePaddedRaw>);

}  // namespace
}  // namespace headrace
