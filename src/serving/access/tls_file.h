// What a port with TLS shows to its clients and asks of them: an SSLConfig and
// the files that it names.
#pragma once

#include <memory>
#include <string>

#include "serving/access/reread.h"

struct ssl_ctx_st;

namespace headrace::serving {

// All in PEM.
struct TlsKeys {
  std::string server_key, server_cert;  // the certificate's chain behind it
  std::string custom_ca;                // who signs clients' certificates
  bool client_verify = false;           // whether clients must show one

  bool operator==(const TlsKeys&) const = default;
};

struct TlsIdentity {
  TlsKeys keys;
  // OpenSSL's, of a server of HTTP/1.1 over TLS 1.2 or later.
  std::shared_ptr<ssl_ctx_st> context;
};

using TlsFile = Reread<TlsKeys, TlsIdentity>;

// InvalidArgument where keys and certificates are none or do not fit each
// other.
StatusOr<std::shared_ptr<const TlsIdentity>> MakeTlsIdentity(
    const TlsKeys& keys);

// An SSLConfig text proto, whose keys and certificates are PEM text or
// "file:PATH". Errors of reading the files and of MakeTlsIdentity. Whether
// clients must show certificates does not change while the server runs: a file
// that says so then is refused.
StatusOr<std::shared_ptr<TlsFile>> OpenTlsFile(const std::string& path);

}  // namespace headrace::serving
