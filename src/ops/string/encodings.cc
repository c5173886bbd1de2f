// EncodeBase64, DecodeBase64 (of URLs), DecodeRaw, DecodePaddedRaw.
#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "base/numbers/bools.h"
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

// The number that a character of web-safe base64 stands for, or -1.
constexpr auto kDigits = [] {
  std::array<int8_t, 256> digits{};
  digits.fill(-1);
  for (int i = 0; i < 26; ++i) {
    digits['A' + i] = static_cast<int8_t>(i);
    digits['a' + i] = static_cast<int8_t>(26 + i);
  }
  for (int i = 0; i < 10; ++i) digits['0' + i] = static_cast<int8_t>(52 + i);
  digits['-'] = 62;
  digits['_'] = 63;
  return digits;
}();

Status DecodeOne(StringView s, std::string* out) {
  // Up to two '=' may fill the last four characters.
  for (int i = 0; i < 2 && s.size() % 4 == (4 - i) % 4; ++i) {
    if (!absl::ConsumeSuffix(&s, "=")) break;
  }
  // Six bits are not a byte.
  if (s.size() % 4 == 1) {
    return InvalidArgument("Base64 string length cannot be 1 modulo 4.");
  }
  auto digit = [&](size_t i) {
    return static_cast<int32_t>(kDigits[static_cast<unsigned char>(s[i])]);
  };
  out->resize(s.size() / 4 * 3 + (s.size() % 4 ? s.size() % 4 - 1 : 0));
  char* to = out->data();
  int32_t all = 0;  // negative once a character is wrong
  size_t i = 0;
  for (; i + 4 <= s.size(); i += 4) {
    const int32_t a = digit(i), b = digit(i + 1), c = digit(i + 2),
                  d = digit(i + 3);
    all |= a | b | c | d;
    *to++ = static_cast<char>(a << 2 | b >> 4);
    *to++ = static_cast<char>(b << 4 | c >> 2);
    *to++ = static_cast<char>(c << 6 | d);
  }
  if (i < s.size()) {
    const int32_t a = digit(i), b = digit(i + 1);
    all |= a | b;
    *to++ = static_cast<char>(a << 2 | b >> 4);
    if (i + 2 < s.size()) {
      const int32_t c = digit(i + 2);
      all |= c;
      *to++ = static_cast<char>(b << 4 | c >> 2);
    }
  }
  if (all >= 0) return OkStatus();
  return InvalidArgument("Invalid character found in base64.");
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
  // A bool of any byte but 0 and 1 is undefined in C++.
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
