#include "command/text/npy.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/numbers/bools.h"
#include "base/utf8.h"

namespace headrace::command {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
constexpr size_t kAlignment = 64;
constexpr size_t kBytesOfCharacter = 4;  // of the type U

struct NumpyType {
  DType dtype;
  const char* descr;  // without the order of bytes
};
// The first of a descr is what it is read as.
constexpr NumpyType kTypes[] = {
    {DType::kFloat, "f4"},          {DType::kDouble, "f8"},
    {DType::kHalf, "f2"},           {DType::kInt32, "i4"},
    {DType::kInt64, "i8"},          {DType::kInt16, "i2"},
    {DType::kInt8, "i1"},           {DType::kUint8, "u1"},
    {DType::kUint16, "u2"},         {DType::kUint32, "u4"},
    {DType::kUint64, "u8"},         {DType::kBool, "b1"},
    {DType::kComplex64, "c8"},      {DType::kComplex128, "c16"},
    {DType::kBfloat16, "V2"},       {DType::kQint8, "i1"},
    {DType::kQuint8, "u1"},         {DType::kQint16, "i2"},
    {DType::kQuint16, "u2"},        {DType::kQint32, "i4"},
    {DType::kFloat8E5m2, "V1"},     {DType::kFloat8E4m3fn, "V1"},
    {DType::kFloat8E4m3fnuz, "V1"}, {DType::kFloat8E4m3b11fnuz, "V1"},
    {DType::kFloat8E5m2fnuz, "V1"}, {DType::kInt4, "i1"},
    {DType::kUint4, "u1"},          {DType::kInt2, "i1"},
    {DType::kUint2, "u1"}};

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> dims;
};

Status NoNpy(StringView what) {
  return InvalidArgument("not a .npy file: ", what);
}

// What stands behind 'key': in the header, up to `end` after it.
StatusOr<StringView> Member(StringView header, StringView key,
                            StringView ends) {
  const size_t at = header.find(absl::StrCat("'", key, "':"));
  if (at == StringView::npos) {
    return NoNpy(absl::StrCat("its header has no '", key, "'"));
  }
  StringView rest = header.substr(at + key.size() + 3);
  rest = absl::StripLeadingAsciiWhitespace(rest);
  const size_t end = rest.find_first_of(ends);
  if (end == StringView::npos) {
    return NoNpy(absl::StrCat("'", key, "' of its header does not end"));
  }
  return rest.substr(0, end);
}

StatusOr<NpyHeader> ParseHeader(StringView text) {
  NpyHeader header;
  HR_ASSIGN_OR_RETURN(StringView descr, Member(text, "descr", ",}"));
  if (!absl::ConsumePrefix(&descr, "'") || !absl::ConsumeSuffix(&descr, "'")) {
    return Unimplemented(".npy files of structures are not read: ", descr);
  }
  header.descr = std::string(descr);
  HR_ASSIGN_OR_RETURN(StringView order, Member(text, "fortran_order", ",}"));
  if (order != "True" && order != "False") {
    return NoNpy(absl::StrCat("'fortran_order' is ", order));
  }
  header.fortran_order = order == "True";
  HR_ASSIGN_OR_RETURN(StringView shape, Member(text, "shape", ")"));
  if (!absl::ConsumePrefix(&shape, "(")) return NoNpy("'shape' is no tuple");
  for (StringView part : absl::StrSplit(shape, ',', absl::SkipWhitespace())) {
    int64_t size;
    if (!absl::SimpleAtoi(part, &size)) {
      return NoNpy(absl::StrCat("'shape' has a size ", part));
    }
    header.dims.push_back(size);
  }
  return header;
}

// The header's text, and where the elements begin.
StatusOr<StringView> HeaderOf(StringView bytes, size_t* begin) {
  if (bytes.size() < kMagicSize + 4 ||
      bytes.substr(0, kMagicSize) != StringView(kMagic, kMagicSize)) {
    return NoNpy("it does not begin with \\x93NUMPY");
  }
  const auto byte = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const size_t version = byte(kMagicSize);
  if (version < 1 || version > 3) {
    return NoNpy(absl::StrCat("version ", version, " is unknown"));
  }
  size_t at = kMagicSize + 2;
  const size_t width = version == 1 ? 2 : 4;
  if (bytes.size() < at + width) return NoNpy("it ends in its header");
  size_t length = 0;
  for (size_t i = 0; i < width; ++i) length |= byte(at + i) << (8 * i);
  at += width;
  if (length > bytes.size() - at) return NoNpy("it ends in its header");
  *begin = at + length;
  return bytes.substr(at, length);
}

// From the order of columns to that of rows.
Tensor InRows(const Tensor& columns, const Tensor& rows, size_t size) {
  const Shape& shape = rows.shape();
  std::vector<int64_t> index(shape.rank());
  const char* from = static_cast<const char*>(columns.raw());
  char* to = static_cast<char*>(rows.raw());
  for (int64_t i = 0; i < rows.num_elements(); ++i) {
    int64_t place = 0, stride = 1;
    for (int d = 0; d < shape.rank(); ++d) {
      place += index[d] * stride;
      stride *= shape[d];
    }
    std::memcpy(to + i * size, from + place * size, size);
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape[d]; --d) {
      index[d] = 0;
    }
  }
  return rows;
}

// One element of the types S and U.
std::string TextOf(StringView bytes, bool is_unicode) {
  std::string text;
  if (is_unicode) {
    for (size_t i = 0; i + kBytesOfCharacter <= bytes.size();
         i += kBytesOfCharacter) {
      uint32_t c;
      std::memcpy(&c, bytes.data() + i, sizeof c);
      Utf8Append(c < 0x110000 ? static_cast<int32_t>(c) : kReplacementCharacter,
                 &text);
    }
  } else {
    text = std::string(bytes);
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

StatusOr<Tensor> ReadTexts(const NpyHeader& header, const Shape& shape,
                           StringView data) {
  const bool is_unicode = header.descr[1] == 'U';
  int64_t width;
  if (!absl::SimpleAtoi(header.descr.substr(2), &width) || width < 0 ||
      width > (1 << 30)) {
    return NoNpy(absl::StrCat("its type is ", header.descr));
  }
  if (is_unicode) width *= kBytesOfCharacter;
  int64_t count, bytes;
  if (!CountElements(shape, &count) || !MultiplyChecked(count, width, &bytes) ||
      bytes > static_cast<int64_t>(data.size()) ||
      // Texts of no length take no bytes, however many there are said to be.
      (width == 0 && count > static_cast<int64_t>(data.size()))) {
    return NoNpy("it ends before its elements do");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(DType::kString, shape));
  for (int64_t i = 0; i < count; ++i) {
    t.data<std::string>()[i] =
        TextOf(data.substr(i * width, width), is_unicode);
  }
  return t;
}

StatusOr<Tensor> ReadPlain(const NpyHeader& header, const Shape& shape,
                           StringView data) {
  for (const NumpyType& type : kTypes) {
    if (header.descr.substr(1) != type.descr) continue;
    const size_t size = DTypeSize(type.dtype);
    int64_t count, bytes;
    if (!CountElements(shape, &count) ||
        !MultiplyChecked(count, static_cast<int64_t>(size), &bytes) ||
        bytes > static_cast<int64_t>(data.size())) {
      return NoNpy("it ends before its elements do");
    }
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(type.dtype, shape));
    if (bytes > 0) std::memcpy(t.raw(), data.data(), bytes);
    if (t.dtype() == DType::kBool) MakeBools(t.raw(), t.bytes());
    if (!header.fortran_order || shape.rank() < 2) return t;
    HR_ASSIGN_OR_RETURN(const Tensor rows, Tensor::Allocate(type.dtype, shape));
    return InRows(t, rows, size);
  }
  return Unimplemented(".npy files of type ", header.descr, " are not read");
}

}  // namespace

StatusOr<Tensor> TensorFromNpy(StringView bytes) {
  size_t begin = 0;
  HR_ASSIGN_OR_RETURN(const StringView text, HeaderOf(bytes, &begin));
  HR_ASSIGN_OR_RETURN(const NpyHeader header, ParseHeader(text));
  HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(header.dims));
  if (header.descr.size() < 2) return NoNpy("its type is empty");
  const char order = header.descr[0], kind = header.descr[1];
  if (order == '>') {
    return Unimplemented(
        ".npy files of the other order of bytes are not read: ", header.descr);
  }
  if (kind == 'S' || kind == 'U') {
    if (header.fortran_order && shape.rank() > 1) {
      return Unimplemented("texts in the order of columns are not read");
    }
    return ReadTexts(header, shape, bytes.substr(begin));
  }
  return ReadPlain(header, shape, bytes.substr(begin));
}

StatusOr<std::string> NpyFromTensor(const Tensor& tensor) {
  std::string descr, data;
  if (tensor.dtype() == DType::kString) {
    size_t width = 1;
    for (const std::string& s : tensor.span<std::string>()) {
      if (!s.empty() && s.back() == '\0') {
        return InvalidArgument(
            "a string that ends in a zero byte cannot be kept in a .npy file");
      }
      width = std::max(width, s.size());
    }
    for (const std::string& s : tensor.span<std::string>()) {
      data += s;
      data.append(width - s.size(), '\0');
    }
    descr = absl::StrCat("|S", width);
  } else {
    for (const NumpyType& type : kTypes) {
      if (type.dtype != tensor.dtype()) continue;
      descr = absl::StrCat(DTypeSize(type.dtype) > 1 ? "<" : "|", type.descr);
    }
    if (descr.empty()) {
      return Unimplemented("a .npy file cannot hold a ",
                           DTypePythonName(tensor.dtype()), " tensor");
    }
    data.assign(static_cast<const char*>(tensor.raw()), tensor.bytes());
  }
  std::string header = absl::StrCat("{'descr': '", descr,
                                    "', 'fortran_order': False, 'shape': (");
  for (int64_t d : tensor.shape().dims()) absl::StrAppend(&header, d, ",");
  absl::StrAppend(&header, "), }");
  const size_t before = kMagicSize + 4;
  while ((before + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string file(kMagic, kMagicSize);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
           static_cast<char>(header.size() >> 8)};
  return absl::StrCat(file, header, data);
}

}  // namespace headrace::command
