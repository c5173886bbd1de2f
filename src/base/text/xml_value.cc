#include "base/text/xml_value.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/utf8.h"

namespace headrace {
namespace {

constexpr int kDeepestXml = 32;

bool EndsName(char c) {
  return absl::ascii_isspace(static_cast<unsigned char>(c)) || c == '>' ||
         c == '/' || c == '<' || c == '=';
}

class XmlParser {
 public:
  explicit XmlParser(StringView text) : text_(text) {}

  StatusOr<XmlElement> Parse() {
    (void)TakeText("\xef\xbb\xbf");
    HR_RETURN_IF_ERROR(SkipAsides());
    XmlElement root;
    if (!TakeText("<")) return Bad("an element");
    HR_RETURN_IF_ERROR(ParseElement(0, &root));
    HR_RETURN_IF_ERROR(SkipAsides());
    if (at_ < text_.size()) return Bad("the end");
    return root;
  }

 private:
  Status Bad(StringView expected) const {
    return InvalidArgument("XML: expected ", expected, " at character ", at_,
                           at_ < text_.size() ? "" : ", where it ends");
  }
  bool TakeText(StringView what) {
    if (!absl::StartsWith(text_.substr(at_), what)) return false;
    at_ += what.size();
    return true;
  }
  void SkipBlanks() {
    while (at_ < text_.size() &&
           absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
  }
  Status SkipTo(StringView end) {
    const size_t found = text_.find(end, at_);
    if (found == StringView::npos) {
      at_ = text_.size();
      return Bad(end);
    }
    at_ = found + end.size();
    return OkStatus();
  }
  // Blanks, comments and instructions.
  Status SkipAsides() {
    for (;;) {
      SkipBlanks();
      if (TakeText("<!--")) {
        HR_RETURN_IF_ERROR(SkipTo("-->"));
      } else if (TakeText("<?")) {
        HR_RETURN_IF_ERROR(SkipTo("?>"));
      } else {
        return OkStatus();
      }
    }
  }

  StatusOr<StringView> ParseName() {
    const size_t begin = at_;
    while (at_ < text_.size() && !EndsName(text_[at_])) ++at_;
    if (at_ == begin) return Bad("a name");
    return text_.substr(begin, at_ - begin);
  }

  // Behind the name of an element, to behind its '>'. *empty: "/>".
  Status SkipAttributes(bool* empty) {
    for (;;) {
      SkipBlanks();
      *empty = TakeText("/>");
      if (*empty || TakeText(">")) return OkStatus();
      HR_RETURN_IF_ERROR(ParseName().status());
      SkipBlanks();
      if (!TakeText("=")) return Bad("=");
      SkipBlanks();
      const bool single = TakeText("'");
      if (!single && !TakeText("\"")) return Bad("a quote");
      HR_RETURN_IF_ERROR(SkipTo(single ? "'" : "\""));
    }
  }

  // Behind its '<'.
  Status ParseElement(int depth, XmlElement* out) {
    if (depth > kDeepestXml) {
      return InvalidArgument("XML nests deeper than ", kDeepestXml);
    }
    HR_ASSIGN_OR_RETURN(const StringView name, ParseName());
    if (name[0] == '!' || name[0] == '?') return Bad("an element");
    out->name = std::string(name.substr(name.rfind(':') + 1));
    bool empty = false;
    HR_RETURN_IF_ERROR(SkipAttributes(&empty));
    if (empty) return OkStatus();
    HR_RETURN_IF_ERROR(ParseContent(depth, out));
    HR_ASSIGN_OR_RETURN(const StringView end, ParseName());
    if (end != name) return Bad(absl::StrCat("the end of ", name));
    SkipBlanks();
    if (!TakeText(">")) return Bad(">");
    absl::StripAsciiWhitespace(&out->text);
    return OkStatus();
  }

  // To behind the "</" of its end.
  Status ParseContent(int depth, XmlElement* out) {
    for (;;) {
      if (at_ == text_.size()) return Bad("the end of an element");
      if (TakeText("</")) return OkStatus();
      if (TakeText("<!--")) {
        HR_RETURN_IF_ERROR(SkipTo("-->"));
      } else if (TakeText("<?")) {
        HR_RETURN_IF_ERROR(SkipTo("?>"));
      } else if (TakeText("<![CDATA[")) {
        const size_t begin = at_;
        HR_RETURN_IF_ERROR(SkipTo("]]>"));
        absl::StrAppend(&out->text, text_.substr(begin, at_ - 3 - begin));
      } else if (TakeText("<")) {
        HR_RETURN_IF_ERROR(
            ParseElement(depth + 1, &out->children.emplace_back()));
      } else if (TakeText("&")) {
        HR_RETURN_IF_ERROR(ParseEntity(&out->text));
      } else {
        out->text += text_[at_++];
      }
    }
  }

  // Behind its '&'.
  Status ParseEntity(std::string* out) {
    constexpr struct {
      const char *name, *text;
    } kEntities[] = {{"amp;", "&"},
                     {"lt;", "<"},
                     {"gt;", ">"},
                     {"quot;", "\""},
                     {"apos;", "'"}};
    for (const auto& e : kEntities) {
      if (!TakeText(e.name)) continue;
      *out += e.text;
      return OkStatus();
    }
    const size_t end = text_.find(';', at_);
    if (!TakeText("#") || end == StringView::npos) return Bad("an entity");
    const StringView digits = text_.substr(at_, end - at_);
    uint32_t code = 0;
    const bool number = absl::StartsWith(digits, "x")
                            ? absl::SimpleHexAtoi(digits.substr(1), &code)
                            : absl::SimpleAtoi(digits, &code);
    if (!number || code == 0 || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000)) {
      return Bad("a character's number");
    }
    at_ = end + 1;
    Utf8Append(static_cast<int32_t>(code), out);
    return OkStatus();
  }

  const StringView text_;
  size_t at_ = 0;
};

}  // namespace

const XmlElement* XmlElement::Find(StringView name) const {
  for (const XmlElement& child : children) {
    if (child.name == name) return &child;
  }
  return nullptr;
}

StringView XmlElement::Text(StringView name) const {
  const XmlElement* child = Find(name);
  return child == nullptr ? StringView() : child->text;
}

StatusOr<XmlElement> ParseXml(StringView text) {
  return XmlParser(text).Parse();
}

}  // namespace headrace
