#include "serving/rest/route.h"

#include <re2/re2.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace headrace::serving {
namespace {

re2::StringPiece Piece(StringView s) {
  return re2::StringPiece(s.data(), s.size());
}

// What the parentheses of a pattern found.
struct Found {
  std::string name, version, label, last;
};

// Of either method; null where the path is none of its.
const char* const kPostPath =
    "(?i)/v1/models/([^/:]+)(?:/versions/(\\d+)|/labels/([^/:]+))?"
    ":(classify|regress|predict)";
const char* const kGetPath =
    "(?i)/v1/models(?:/([^/:]+))?(?:/versions/(\\d+)|/labels/([^/:]+))?"
    "(/metadata)?";

bool Match(const RE2& pattern, StringView path, Found* found) {
  return RE2::FullMatch(Piece(path), pattern, &found->name, &found->version,
                        &found->label, &found->last);
}

bool FindKind(StringView method, StringView path, Found* found,
              RestRoute::Kind* kind) {
  static const RE2* const post = new RE2(kPostPath);
  static const RE2* const get = new RE2(kGetPath);
  if (method == "GET") {
    if (!Match(*get, path, found)) return false;
    *kind = found->last.empty() ? RestRoute::Kind::kStatus
                                : RestRoute::Kind::kMetadata;
    return true;
  }
  if (method != "POST" || !Match(*post, path, found)) return false;
  // The pattern takes any case of the verb, the server this one alone.
  if (found->last == "predict") {
    *kind = RestRoute::Kind::kPredict;
  } else if (found->last == "classify") {
    *kind = RestRoute::Kind::kClassify;
  } else if (found->last == "regress") {
    *kind = RestRoute::Kind::kRegress;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string PercentDecoded(StringView text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size() &&
             absl::ascii_isxdigit(static_cast<unsigned char>(text[at]));
    };
    if (text[i] == '%' && digit(i + 1) && digit(i + 2)) {
      out.push_back(static_cast<char>(
          std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool IsRestPath(StringView path) {
  return absl::StartsWithIgnoreCase(path, "/v1/");
}

StatusOr<RestRoute> RouteOf(StringView method, StringView path) {
  Found found;
  RestRoute route;
  if (!FindKind(method, path, &found, &route.kind)) {
    return InvalidArgument("Malformed request: ", method, " ", path);
  }
  route.spec.set_name(PercentDecoded(found.name));
  if (!found.version.empty()) {
    int64_t version;
    if (!absl::SimpleAtoi(found.version, &version)) {
      return InvalidArgument("Failed to convert version: ", found.version,
                             " to numeric.");
    }
    route.spec.mutable_version()->set_value(version);
  } else if (!found.label.empty()) {
    route.spec.set_version_label(PercentDecoded(found.label));
  }
  return route;
}

int HttpStatusOf(const Status& s) {
  switch (s.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

}  // namespace headrace::serving
