#include "serving/rpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <vector>

#include "base/mutex.h"

namespace headrace::serving {
namespace {

// What gRPC asks for each new connection of a port. (gRPC's own provider of
// certificates that change, FileWatcherCertificateProvider, wants each in a
// file of its own, and reads them at different times.)
class KeysForPort {
 public:
  explicit KeysForPort(std::shared_ptr<TlsFile> file)
      : file_(std::move(file)) {}

  // gRPC's credentials, which the caller releases.
  grpc_server_credentials* Make() {
    const bool asks = file_->now()->keys.client_verify;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            asks ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &KeysForPort::Fetch, this));
  }

 private:
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<KeysForPort*>(self)->Next(config);
  }

  grpc_ssl_certificate_config_reload_status Next(
      grpc_ssl_server_certificate_config** config) {
    const std::shared_ptr<const TlsIdentity> now = file_->now();
    const MutexLock lock(mutex_);
    if (now == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const TlsKeys& keys = now->keys;
    const grpc_ssl_pem_key_cert_pair pair{keys.server_key.c_str(),
                                          keys.server_cert.c_str()};
    // gRPC ends the process where there is none, and looks at it only where
    // clients are asked.
    const std::string& ca =
        keys.client_verify ? keys.custom_ca : keys.server_cert;
    *config = grpc_ssl_server_certificate_config_create(ca.c_str(), &pair, 1);
    given_ = now;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<TlsFile> file_;
  Mutex mutex_;
  std::shared_ptr<const TlsIdentity> given_ ABSL_GUARDED_BY(mutex_);
};

// The C++ interface of gRPC knows keys that do not change and keys in files;
// that of C, of the same library, asks.
class ChangingTlsCredentials : public grpc::ServerCredentials {
 public:
  explicit ChangingTlsCredentials(std::shared_ptr<TlsFile> file)
      : file_(std::move(file)) {}
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    // One for each port: each has to be told of a change.
    ports_.push_back(std::make_unique<KeysForPort>(file_));
    grpc_server_credentials* credentials = ports_.back()->Make();
    const int port =
        grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const std::shared_ptr<TlsFile> file_;
  std::vector<std::unique_ptr<KeysForPort>> ports_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(
    std::shared_ptr<TlsFile> file) {
  return std::make_shared<ChangingTlsCredentials>(std::move(file));
}

}  // namespace headrace::serving
