// StringLower, StringUpper, StringStrip, StringLength.
#include <clocale>
#include <cwctype>

#include "absl/strings/ascii.h"
#include "base/utf8.h"
#include "ops/string/string_map.h"

namespace headrace {
namespace {

// Case by Unicode's tables, character by character; null if the system has
// none.
locale_t UnicodeLocale() {
  static const locale_t locale =
      newlocale(LC_CTYPE_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
  return locale;
}

template <bool kUpper>
std::string ChangeUnicodeCase(const std::string& s) {
  std::string out;
  out.reserve(s.size());
  for (size_t at = 0; at < s.size();) {
    const int32_t c = Utf8Next(s, &at);
    if (c < 0) {
      Utf8Append(kReplacementCharacter, &out);
    } else if (kUpper && c == 0xdf) {
      out += "SS";  // the sharp s has no capital of one character
    } else {
      wint_t changed = kUpper ? towupper_l(c, UnicodeLocale())
                              : towlower_l(c, UnicodeLocale());
      Utf8Append(static_cast<int32_t>(changed), &out);
    }
  }
  return out;
}

template <bool kUpper>
Status ChangeCase(KernelContext& c) {
  const std::string& encoding = c.op().string_attr("encoding");
  if (encoding.empty()) {
    MapStrings<std::string>(c, [](const std::string& s) {
      return kUpper ? absl::AsciiStrToUpper(s) : absl::AsciiStrToLower(s);
    });
    return OkStatus();
  }
  if (encoding != "utf-8") {
    return InvalidArgument(
        "only utf-8 or '' (no encoding) is supported, received ", encoding);
  }
  if (!UnicodeLocale()) return Unimplemented("no C.UTF-8 on this machine");
  MapStrings<std::string>(c, ChangeUnicodeCase<kUpper>);
  return OkStatus();
}

OpBuilder StringCaseOp(const char* name, const char* doc,
                       KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("input: string")
      .Output("output: string")
      .Attr("encoding: string = ''")
      .Doc(doc)
      .Shape(UnchangedShape)
      .Cpu(kernel);
  return b;
}

[[maybe_unused]] const OpRegistrar kStringCases[] = {
    StringCaseOp("StringLower", "Lower case: of ASCII, or of utf-8.",
                 Compute<ChangeCase<false>>),
    StringCaseOp("StringUpper", "Upper case: of ASCII, or of utf-8.",
                 Compute<ChangeCase<true>>),
};

Status Strip(KernelContext& c) {
  MapStrings<std::string>(c, [](const std::string& s) {
    return std::string(absl::StripAsciiWhitespace(s));
  });
  return OkStatus();
}

HR_OP(StringStrip)
    .Input("input: string")
    .Output("output: string")
    .Doc("Strings without white space at their ends.")
    .Shape(UnchangedShape)
    .Cpu(Compute<Strip>);

Status Length(KernelContext& c) {
  if (c.op().string_attr("unit") == "BYTE") {
    MapStrings<int32_t>(
        c, [](const std::string& s) { return static_cast<int32_t>(s.size()); });
  } else {
    MapStrings<int32_t>(c, [](const std::string& s) {
      return static_cast<int32_t>(Utf8Length(s));
    });
  }
  return OkStatus();
}

HR_OP(StringLength)
    .Input("input: string")
    .Output("output: int32")
    .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
    .Doc("Lengths in bytes or characters.")
    .Shape(UnchangedShape)
    .Cpu(Compute<Length>);

}  // namespace
}  // namespace headrace
