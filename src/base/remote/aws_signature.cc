#include "base/remote/aws_signature.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace headrace {
namespace {

std::string AwsTime(std::time_t now) {
  std::tm utc;
  gmtime_r(&now, &utc);
  char text[32];
  const size_t n = std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &utc);
  return {text, n};
}

std::string Hex(const Sha256Digest& digest) {
  return absl::BytesToHexString(BytesOf(digest));
}

}  // namespace

std::vector<std::string> AwsHeaders(const AwsCall& call,
                                    const AwsCredentials& credentials,
                                    std::time_t now) {
  const std::string time = AwsTime(now), day = time.substr(0, 8);
  std::vector<std::string> added = {absl::StrCat("Host: ", call.host),
                                    absl::StrCat("x-amz-date: ", time)};
  added.push_back(absl::StrCat("x-amz-content-sha256: ", call.body_sum));
  if (!credentials.session.empty()) {
    added.push_back(
        absl::StrCat("x-amz-security-token: ", credentials.session));
  }
  std::map<std::string, std::string> signed_headers;
  const std::vector<std::string>* const all[] = {&call.headers, &added};
  for (const auto* headers : all) {
    for (const StringView header : *headers) {
      const size_t colon = header.find(':');
      std::string value(header.substr(std::min(colon + 1, header.size())));
      absl::RemoveExtraAsciiWhitespace(&value);
      signed_headers[absl::AsciiStrToLower(header.substr(0, colon))] = value;
    }
  }
  std::string lines, names;
  for (const auto& [name, value] : signed_headers) {
    absl::StrAppend(&lines, name, ":", value, "\n");
    absl::StrAppend(&names, names.empty() ? "" : ";", name);
  }
  const std::string canonical =
      absl::StrCat(call.method, "\n", call.path, "\n", call.query, "\n", lines,
                   "\n", names, "\n", call.body_sum);
  const std::string scope =
      absl::StrCat(day, "/", call.region, "/", call.service, "/aws4_request");
  const std::string text = absl::StrCat("AWS4-HMAC-SHA256\n", time, "\n", scope,
                                        "\n", Hex(Sha256Of(canonical)));
  Sha256Digest key = HmacSha256(absl::StrCat("AWS4", credentials.secret), day);
  for (const StringView part :
       {StringView(call.region), StringView(call.service),
        StringView("aws4_request")}) {
    key = HmacSha256(BytesOf(key), part);
  }
  added.push_back(absl::StrCat(
      "Authorization: AWS4-HMAC-SHA256 Credential=", credentials.id, "/", scope,
      ",SignedHeaders=", names,
      ",Signature=", Hex(HmacSha256(BytesOf(key), text))));
  return added;
}

}  // namespace headrace
