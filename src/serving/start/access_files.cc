#include "serving/start/access_files.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "serving/rpc/tls_credentials.h"

namespace headrace::serving {
namespace {

using Values = absl::InlinedVector<StringView, 2>;

// Also of paths that are open to all no body is taken in.
bool HasBody(const HttpRequest& head) {
  const StringView length = head.header("content-length");
  return !head.header("transfer-encoding").empty() ||
         (!length.empty() && length != "0");
}

Status CheckHttp(const TokenFile& tokens, const HttpRequest& head) {
  if (HttpIsOpenToAll(head.method, head.path) && !HasBody(head)) {
    return OkStatus();
  }
  Values values;
  for (const auto& [name, value] : head.headers) {
    if (absl::EqualsIgnoreCase(name, "authorization")) values.push_back(value);
  }
  return tokens.now()->Check(values);
}

Status CheckRpc(const TokenFile& tokens, StringView path,
                const RpcMetadata& metadata) {
  if (RpcIsOpenToAll(path)) return OkStatus();
  Values values;
  const auto [begin, end] = metadata.equal_range("authorization");
  for (auto it = begin; it != end; ++it) {
    values.emplace_back(it->second.data(), it->second.size());
  }
  return tokens.now()->Check(values);
}

}  // namespace

StatusOr<std::unique_ptr<AccessFiles>> AccessFiles::Open(const Flags& flags,
                                                         AccessLog log) {
  std::unique_ptr<AccessFiles> made(new AccessFiles);
  if (!flags.auth_token_file.empty()) {
    HR_ASSIGN_OR_RETURN(made->tokens_, OpenTokenFile(flags.auth_token_file));
  }
  if (!flags.ssl_config_file.empty()) {
    HR_ASSIGN_OR_RETURN(made->rpc_tls_, OpenTlsFile(flags.ssl_config_file));
  }
  if (!flags.rest_api_ssl_config_file.empty()) {
    HR_ASSIGN_OR_RETURN(made->rest_tls_,
                        OpenTlsFile(flags.rest_api_ssl_config_file));
  }
  if (!made->tokens_ && !made->rpc_tls_ && !made->rest_tls_) return made;
  HR_ASSIGN_OR_RETURN(
      made->looks_,
      LookingThread::Start([tokens = made->tokens_, rpc = made->rpc_tls_,
                            rest = made->rest_tls_, log = std::move(log)] {
        if (tokens) tokens->Look(log);
        if (rpc) rpc->Look(log);
        if (rest) rest->Look(log);
      }));
  return made;
}

void AccessFiles::Guard(RpcOptions* options) const {
  if (rpc_tls_) options->credentials = TlsCredentials(rpc_tls_);
  if (!tokens_) return;
  options->authorize = [tokens = tokens_](StringView path,
                                          const RpcMetadata& metadata) {
    return CheckRpc(*tokens, path, metadata);
  };
}

void AccessFiles::Guard(RestOptions* options) const {
  options->tls = rest_tls_;
  if (!tokens_) return;
  options->admit = [tokens = tokens_](const HttpRequest& head) {
    return CheckHttp(*tokens, head);
  };
}

}  // namespace headrace::serving
