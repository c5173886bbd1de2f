// Signatures in words.
#include "absl/strings/escaping.h"
#include "function/signature.h"

namespace headrace {
namespace {

std::string ShapeText(const Shape& shape) {
  if (!shape.known_rank()) return "<unknown>";
  std::string out = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    absl::StrAppend(&out, i ? ", " : "");
    if (shape[i] < 0) {
      absl::StrAppend(&out, "None");
    } else {
      absl::StrAppend(&out, shape[i]);
    }
  }
  return out + (shape.rank() == 1 ? ",)" : ")");
}

class PartsReader {
 public:
  explicit PartsReader(TokenSpan tokens) : tokens_(tokens) {}

  size_t at() const { return at_; }
  SignatureItem Next() { return ReadItem(tokens_, &at_); }
  // Appends the parts of the structure, tensor or value that comes next.
  void Take(const std::string& path) {
    const size_t start = at_;
    const SignatureItem item = Next();
    switch (item.tag) {
      case Signature::kTuple:
      case Signature::kList:
        for (int64_t i = 0; i < item.number; ++i) {
          Take(absl::StrCat(path, "[", i, "]"));
        }
        // An empty one has no part that would tell it from others.
        if (item.number == 0) parts_.push_back({path, TextOf(item), start});
        break;
      case Signature::kDict:
        for (int64_t i = 0; i < item.number; ++i) {
          const std::string key = Next().text;
          Take(absl::StrCat(path, "['", absl::CEscape(key), "']"));
        }
        if (item.number == 0) parts_.push_back({path, TextOf(item), start});
        break;
      default:
        parts_.push_back({path, TextOf(item), start});
    }
  }
  std::vector<SignaturePart>& parts() { return parts_; }

 private:
  const TokenSpan tokens_;
  size_t at_ = 0;
  std::vector<SignaturePart> parts_;
};

}  // namespace

std::string TextOf(const SignatureItem& item) {
  switch (item.tag) {
    case Signature::kTensor:
      return absl::StrCat("TensorSpec(shape=", ShapeText(item.shape),
                          ", dtype=tf.", DTypePythonName(item.dtype),
                          ", name=None)");
    case Signature::kVariable:
      return absl::StrCat("VariableSpec(shape=", ShapeText(item.shape),
                          ", dtype=tf.", DTypePythonName(item.dtype),
                          ", trainable=", item.trainable ? "True" : "False",
                          ", alias_id=", item.number, ")");
    case Signature::kNone:
      return "None";
    case Signature::kBool:
      return item.number ? "True" : "False";
    case Signature::kInt:
      return absl::StrCat(item.number);
    case Signature::kFloat:
      return absl::StrCat(item.real);
    case Signature::kText:
      return absl::StrCat("'", absl::CEscape(item.text), "'");
    case Signature::kTuple:
      return absl::StrCat("a tuple of ", item.number);
    case Signature::kList:
      return absl::StrCat("a list of ", item.number);
    case Signature::kDict:
      return absl::StrCat("a dict of ", item.number);
    default:
      return "an argument by name";
  }
}

std::vector<SignaturePart> PartsOfCall(TokenSpan tokens,
                                       absl::Span<const std::string> names) {
  PartsReader reader(tokens);
  const int64_t n = reader.Next().number;
  for (int64_t i = 0; i < n; ++i) {
    reader.Take(i < static_cast<int64_t>(names.size())
                    ? names[i]
                    : absl::StrCat("args[", i, "]"));
  }
  return std::move(reader.parts());
}

std::vector<SignaturePart> PartsOfResults(TokenSpan tokens) {
  PartsReader reader(tokens);
  reader.Take("result");
  return std::move(reader.parts());
}

Status Misfit(TokenSpan takes, TokenSpan call,
              absl::Span<const std::string> names) {
  const std::vector<SignaturePart> wanted = PartsOfCall(takes, names);
  const std::vector<SignaturePart> came = PartsOfCall(call, names);
  for (size_t i = 0; i < wanted.size() || i < came.size(); ++i) {
    if (i >= wanted.size() || i >= came.size()) {
      const SignaturePart& part = i < came.size() ? came[i] : wanted[i];
      return InvalidArgument(
          "argument ", part.path,
          i < came.size() ? " is one too many, " : " is missing, expected ",
          part.text);
    }
    const SignaturePart &a = wanted[i], &b = came[i];
    const bool fits =
        a.path == b.path &&
        Serves(takes.subspan(a.at, BehindItem(takes, a.at) - a.at),
               call.subspan(b.at, BehindItem(call, b.at) - b.at));
    if (fits) continue;
    return InvalidArgument("expected ", a.text, " as ", a.path, ", got ",
                           b.text, a.path == b.path ? "" : " as " + b.path);
  }
  return InvalidArgument("the arguments have another structure");
}

}  // namespace headrace
