// Who may ask: bearer tokens, the same rule for gRPC and HTTP.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "serving/access/reread.h"

namespace headrace::serving {

class Tokens {
 public:
  // One token a line, of visible ASCII characters but '#'; a '#' begins a
  // comment. InvalidArgument with the line for what is no token, and where
  // there is none at all.
  static StatusOr<std::shared_ptr<const Tokens>> Parse(StringView text);

  // What a request has under "authorization": OK for one value "Bearer T" with
  // a T of the tokens, else Unauthenticated. How long it takes says nothing of
  // the tokens.
  Status Check(absl::Span<const StringView> authorization) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static bool DigestOf(StringView token, Digest* digest);

  std::vector<Digest> digests_;
};

using TokenFile = Reread<std::string, Tokens>;

// --auth_token_file. Errors of reading it and of Parse, with the path.
StatusOr<std::shared_ptr<TokenFile>> OpenTokenFile(const std::string& path);

// Paths that need no token: is the server alive, is it ready.
bool RpcIsOpenToAll(StringView path);
// For HTTP also what browsers ask first (OPTIONS), which says nothing of
// models.
bool HttpIsOpenToAll(StringView method, StringView path);

}  // namespace headrace::serving
