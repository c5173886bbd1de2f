#include "base/remote/s3_answer.h"

#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/remote/s3_settings.h"
#include "base/text/xml_value.h"

namespace headrace {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kNanosecondsPerSecond = 1000000000;
// What errors show of an answer that is none of S3's.
constexpr size_t kShownOfS3 = 200;

Status NoS3Answer(StringView why) {
  return DataLoss("the answer is none of S3: ", why);
}

StatusOr<XmlElement> ParseS3Xml(StringView xml, StringView name) {
  auto root = ParseXml(xml);
  if (!root.ok()) return NoS3Answer(root.status().message());
  if (root->name == name) return root;
  return NoS3Answer(
      absl::StrCat("<", root->name, "> where <", name, "> is due"));
}

StatusOr<std::string> S3Member(const XmlElement& element, StringView name) {
  const StringView text = element.Text(name);
  if (!text.empty()) return std::string(text);
  return NoS3Answer(absl::StrCat("it has no ", name));
}

// "a%20b+c" is "a b c".
StatusOr<std::string> UrlDecoded(StringView text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t code = 0;
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
    } else if (i + 2 < text.size() &&
               absl::SimpleHexAtoi(text.substr(i + 1, 2), &code)) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      return NoS3Answer(absl::StrCat("the name ", text));
    }
  }
  return out;
}

// S3's words, and what they are here. All others go by the HTTP status.
constexpr struct {
  StringView name;
  Code code;
  S3Trouble trouble;
} kS3Codes[] = {
    {"NoSuchKey", Code::kNotFound, S3Trouble::kNone},
    {"NoSuchBucket", Code::kNotFound, S3Trouble::kNone},
    {"NoSuchUpload", Code::kNotFound, S3Trouble::kNone},
    {"AccessDenied", Code::kPermissionDenied, S3Trouble::kNone},
    {"ExpiredToken", Code::kPermissionDenied, S3Trouble::kNone},
    {"InvalidToken", Code::kPermissionDenied, S3Trouble::kNone},
    {"TokenRefreshRequired", Code::kPermissionDenied, S3Trouble::kNone},
    {"InvalidAccessKeyId", Code::kPermissionDenied, S3Trouble::kNone},
    {"SignatureDoesNotMatch", Code::kPermissionDenied, S3Trouble::kNone},
    {"QuotaExceeded", Code::kResourceExhausted, S3Trouble::kNone},
    {"EntityTooLarge", Code::kResourceExhausted, S3Trouble::kNone},
    {"BucketAlreadyExists", Code::kAlreadyExists, S3Trouble::kNone},
    {"OperationAborted", Code::kUnavailable, S3Trouble::kRetry},
    {"ConditionalRequestConflict", Code::kUnavailable, S3Trouble::kRetry},
    {"RequestTimeout", Code::kUnavailable, S3Trouble::kRetry},
    {"InternalError", Code::kUnavailable, S3Trouble::kRetry},
    {"SlowDown", Code::kUnavailable, S3Trouble::kRetry},
    {"ServiceUnavailable", Code::kUnavailable, S3Trouble::kRetry},
    {"RequestTimeTooSkewed", Code::kPermissionDenied, S3Trouble::kClock},
    {"PermanentRedirect", Code::kFailedPrecondition, S3Trouble::kRegion},
    {"TemporaryRedirect", Code::kFailedPrecondition, S3Trouble::kRegion},
    {"AuthorizationHeaderMalformed", Code::kFailedPrecondition,
     S3Trouble::kRegion},
};

S3Error ByStatus(int status) {
  switch (status) {
    case 301:
    case 307:
      return {Status(Code::kFailedPrecondition, ""), S3Trouble::kRegion};
    case 401:
    case 403:
      return {Status(Code::kPermissionDenied, "")};
    case 404:
      return {Status(Code::kNotFound, "")};
    case 412:
      return {Status(Code::kAborted, "")};
    case 416:
      return {Status(Code::kOutOfRange, "")};
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return {Status(Code::kUnavailable, ""), S3Trouble::kRetry};
    case 405:
    case 501:
      return {Status(Code::kUnimplemented, "")};
    default:
      return {Status(Code::kInvalidArgument, "")};
  }
}

bool IsTime(const std::tm& t) {
  const auto within = [](int n, int most) { return n >= 0 && n <= most; };
  return within(t.tm_mday, 31) && within(t.tm_hour, 23) &&
         within(t.tm_min, 59) && within(t.tm_sec, 60) && t.tm_year >= 1900 &&
         t.tm_year < 2200;
}

std::string XmlText(StringView text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (u < ' ' || c == '&' || c == '<' || c == '>') {
      absl::StrAppend(&out, "&#", static_cast<int>(u), ";");
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

StatusOr<int64_t> ParseHttpTime(StringView text) {
  constexpr StringView kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::vector<StringView> words = absl::StrSplit(text, ' ');
  std::tm utc = {};
  if (words.size() == 6) {
    const std::vector<StringView> clock = absl::StrSplit(words[4], ':');
    const size_t month = kMonths.find(words[2]);
    if (clock.size() == 3 && words[2].size() == 3 &&
        month != StringView::npos && month % 3 == 0 &&
        absl::SimpleAtoi(words[1], &utc.tm_mday) &&
        absl::SimpleAtoi(words[3], &utc.tm_year) &&
        absl::SimpleAtoi(clock[0], &utc.tm_hour) &&
        absl::SimpleAtoi(clock[1], &utc.tm_min) &&
        absl::SimpleAtoi(clock[2], &utc.tm_sec) && IsTime(utc)) {
      utc.tm_mon = static_cast<int>(month / 3);
      utc.tm_year -= 1900;
      return timegm(&utc) * kNanosecondsPerSecond;
    }
  }
  return NoS3Answer(absl::StrCat("the time '", text, "'"));
}

StatusOr<S3Page> ParseS3Page(StringView xml, StringView prefix) {
  HR_ASSIGN_OR_RETURN(const XmlElement root,
                      ParseS3Xml(xml, "ListBucketResult"));
  const bool encoded = root.Text("EncodingType") == "url";
  S3Page out;
  const auto add = [&](const XmlElement& element, StringView member,
                       std::vector<std::string>* to) -> Status {
    HR_ASSIGN_OR_RETURN(std::string name, S3Member(element, member));
    if (encoded) {
      HR_ASSIGN_OR_RETURN(name, UrlDecoded(name));
    }
    if (!absl::StartsWith(name, prefix) ||
        absl::StrContains(name, StringView("\0", 1))) {
      return NoS3Answer(absl::StrCat("the name '", name, "' in ", prefix));
    }
    to->push_back(std::move(name));
    return OkStatus();
  };
  for (const XmlElement& child : root.children) {
    if (child.name == "Contents") {
      HR_RETURN_IF_ERROR(add(child, "Key", &out.keys));
    } else if (child.name == "CommonPrefixes") {
      HR_RETURN_IF_ERROR(add(child, "Prefix", &out.prefixes));
      if (out.prefixes.back().back() != '/') {
        return NoS3Answer("a prefix without a slash");
      }
    }
  }
  if (root.Text("IsTruncated") == "true") {
    HR_ASSIGN_OR_RETURN(out.next, S3Member(root, "NextContinuationToken"));
  }
  return out;
}

StatusOr<FileStat> ParseS3Head(const HttpAnswer& answer) {
  FileStat stat;
  int64_t size = 0;
  const StringView length = answer.Header("content-length");
  if (!absl::SimpleAtoi(length, &size) || size < 0) {
    return NoS3Answer(absl::StrCat("its length is '", length, "'"));
  }
  stat.size = static_cast<uint64_t>(size);
  HR_ASSIGN_OR_RETURN(stat.mtime_ns,
                      ParseHttpTime(answer.Header("last-modified")));
  return stat;
}

StatusOr<std::string> ParseUploadId(StringView xml) {
  HR_ASSIGN_OR_RETURN(const XmlElement root,
                      ParseS3Xml(xml, "InitiateMultipartUploadResult"));
  return S3Member(root, "UploadId");
}

StatusOr<std::string> ParseCopyTag(StringView xml) {
  auto root = ParseXml(xml);
  if (!root.ok()) return NoS3Answer(root.status().message());
  return S3Member(*root, "ETag");
}

Status ParseDeletions(StringView xml) {
  HR_ASSIGN_OR_RETURN(const XmlElement root, ParseS3Xml(xml, "DeleteResult"));
  const XmlElement* error = root.Find("Error");
  if (error == nullptr) return OkStatus();
  const StringView code = error->Text("Code");
  return Status(
      code == "AccessDenied" ? Code::kPermissionDenied : Code::kUnavailable,
      absl::StrCat(error->Text("Key"), ": ", error->Text("Message"), " (", code,
                   ")"));
}

std::string DeletionXml(absl::Span<const std::string> keys) {
  std::string out = "<Delete><Quiet>true</Quiet>";
  for (const std::string& key : keys) {
    absl::StrAppend(&out, "<Object><Key>", XmlText(key), "</Key></Object>");
  }
  return out + "</Delete>";
}

std::string CompletionXml(absl::Span<const std::string> tags) {
  std::string out = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < tags.size(); ++i) {
    absl::StrAppend(&out, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>",
                    XmlText(tags[i]), "</ETag></Part>");
  }
  return out + "</CompleteMultipartUpload>";
}

bool IsS3Error(const HttpAnswer& answer) {
  const auto root = ParseXml(answer.body);
  return root.ok() && root->name == "Error";
}

S3Error ParseS3Error(const HttpAnswer& answer, StringView path) {
  S3Error out = ByStatus(answer.status);
  const auto root = ParseXml(answer.body);
  std::string words = absl::StrCat("HTTP status ", answer.status);
  out.region = std::string(answer.Header("x-amz-bucket-region"));
  if (root.ok() && root->name == "Error") {
    out.code = std::string(root->Text("Code"));
    words = absl::StrCat(root->Text("Message"), " (", out.code, ")");
    if (out.region.empty()) out.region = std::string(root->Text("Region"));
  } else if (!answer.body.empty()) {
    absl::StrAppend(&words, " without a reason of S3: ",
                    StringView(answer.body).substr(0, kShownOfS3));
  }
  Code code = out.status.code();
  for (const auto& row : kS3Codes) {
    if (row.name != out.code) continue;
    code = row.code;
    out.trouble = row.trouble;
  }
  if (!IsAwsRegion(out.region)) out.region.clear();
  if (out.trouble == S3Trouble::kRegion && out.region.empty()) {
    out.trouble = S3Trouble::kNone;
  }
  out.status = Status(code, absl::StrCat(path, ": ", words));
  return out;
}

}  // namespace headrace
