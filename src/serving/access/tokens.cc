#include "serving/access/tokens.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace headrace::serving {
namespace {

// Headers of requests have 64 KiB; each check looks at every token.
constexpr size_t kLongestToken = 8192, kMostTokens = 10000;
constexpr int64_t kLongestTokenFile = 16 << 20;

bool IsTokenCharacter(char c) { return c > ' ' && c < 0x7f && c != '#'; }

// The token of a line, empty where there is none; false where it is no line of
// a token file.
bool TokenOf(StringView line, StringView* token) {
  line = absl::StripAsciiWhitespace(line);
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  const StringView rest = absl::StripLeadingAsciiWhitespace(line.substr(end));
  *token = line.substr(0, end);
  if (absl::StartsWith(*token, "#")) {
    *token = StringView();
    return true;
  }
  return token->size() <= kLongestToken &&
         std::all_of(token->begin(), token->end(), IsTokenCharacter) &&
         (rest.empty() || rest[0] == '#');
}

}  // namespace

bool Tokens::DigestOf(StringView token, Digest* digest) {
  return EVP_Digest(token.data(), token.size(), digest->data(), nullptr,
                    EVP_sha256(), nullptr) == 1;
}

StatusOr<std::shared_ptr<const Tokens>> Tokens::Parse(StringView text) {
  auto made = std::make_shared<Tokens>();
  int64_t number = 0;
  for (const StringView line : absl::StrSplit(text, '\n')) {
    ++number;
    StringView token;
    if (!TokenOf(line, &token)) {
      // Without its text: logs are read by more people than tokens.
      return InvalidArgument("line ", number,
                             " is no token: one of visible ASCII characters, "
                             "and perhaps a # comment behind it");
    }
    if (token.empty()) continue;
    if (made->digests_.size() == kMostTokens) {
      return InvalidArgument("there are more than ", kMostTokens, " tokens");
    }
    if (!DigestOf(token, &made->digests_.emplace_back())) {
      return ResourceExhausted("no memory for a digest");
    }
  }
  if (made->digests_.empty()) return InvalidArgument("there is no token");
  return made;
}

Status Tokens::Check(absl::Span<const StringView> authorization) const {
  // Of two values a proxy before the server might have looked at the other one.
  if (authorization.size() != 1) {
    return absl::UnauthenticatedError(
        authorization.empty()
            ? "the request has no token: authorization: Bearer TOKEN"
            : "the request has more than one authorization");
  }
  StringView value = absl::StripAsciiWhitespace(authorization[0]);
  const size_t space = std::min(value.find(' '), value.size());
  if (!absl::EqualsIgnoreCase(value.substr(0, space), "bearer")) {
    return absl::UnauthenticatedError(
        "the request has no token: authorization: Bearer TOKEN");
  }
  Digest digest;
  if (!DigestOf(absl::StripAsciiWhitespace(value.substr(space)), &digest)) {
    return ResourceExhausted("no memory for a digest");
  }
  int found = 0;
  for (const Digest& known : digests_) {
    found |= CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0;
  }
  if (found != 0) return OkStatus();
  return absl::UnauthenticatedError("the request's token is not known");
}

StatusOr<std::shared_ptr<TokenFile>> OpenTokenFile(const std::string& path) {
  return TokenFile::Open(
      {path, [path] { return ReadSmallFile(path, kLongestTokenFile); },
       [path](
           const std::string& text) -> StatusOr<std::shared_ptr<const Tokens>> {
         auto made = Tokens::Parse(text);
         if (made.ok()) return made;
         return absl::Status(
             made.status().code(),
             absl::StrCat("token file ", path, ": ", made.status().message()));
       }});
}

bool RpcIsOpenToAll(StringView path) {
  constexpr StringView kInference = "/inference.GRPCInferenceService/";
  if (absl::ConsumePrefix(&path, kInference)) {
    return path == "ServerLive" || path == "ServerReady";
  }
  return absl::StartsWith(path, "/grpc.health.v1.Health/");
}

bool HttpIsOpenToAll(StringView method, StringView path) {
  if (method == "OPTIONS") return true;
  return method == "GET" &&
         (path == "/v2/health/live" || path == "/v2/health/ready");
}

}  // namespace headrace::serving
