#include "distributed/grpc/tls_check.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace headrace::distributed {
namespace {

template <typename T, void (*free)(T*)>
struct Free {
  void operator()(T* p) const { free(p); }
};
using Certificate = std::unique_ptr<X509, Free<X509, &X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, &EVP_PKEY_free>>;
using Text = std::unique_ptr<BIO, Free<BIO, &BIO_free_all>>;

Text TextOf(const std::string& pem) {
  return Text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Certificate FirstOf(const std::string& pem) {
  return Certificate(
      PEM_read_bio_X509(TextOf(pem).get(), nullptr, nullptr, nullptr));
}

// For keys that are locked, which nobody is asked for.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

Status CheckKeys(const TlsKeys& tls) {
  const Certificate certificate = FirstOf(tls.certificate);
  if (!certificate) return InvalidArgument("TLS needs a certificate in PEM");
  const Key key(PEM_read_bio_PrivateKey(TextOf(tls.key).get(), nullptr,
                                        &NoPassword, nullptr));
  if (!key) return InvalidArgument("TLS needs an open private key in PEM");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return InvalidArgument("TLS' private key is not that of its certificate");
  }
  if (!tls.client_roots.empty() && !FirstOf(tls.client_roots)) {
    return InvalidArgument("those who sign clients' certificates have none");
  }
  return OkStatus();
}

}  // namespace headrace::distributed
