// Tokens, keys and certificates that the flags name, which guard the ports.
#pragma once

#include <memory>

#include "rpc/server.h"
#include "serving/access/tls_file.h"
#include "serving/access/tokens.h"
#include "serving/rest/rest_front.h"
#include "serving/start/flags.h"

namespace headrace::serving {

class AccessFiles {
 public:
  // Errors of reading them. They are read again each second from then on, and
  // what is new or broken is told to `log`.
  static StatusOr<std::unique_ptr<AccessFiles>> Open(const Flags& flags,
                                                     AccessLog log);

  void Guard(RpcOptions* options) const;
  void Guard(RestOptions* options) const;

 private:
  AccessFiles() = default;

  std::shared_ptr<TokenFile> tokens_;            // null: all may ask
  std::shared_ptr<TlsFile> rpc_tls_, rest_tls_;  // null: no TLS
  std::unique_ptr<LookingThread> looks_;
};

}  // namespace headrace::serving
