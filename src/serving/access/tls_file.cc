#include "serving/access/tls_file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "absl/strings/strip.h"
#include "serving/proto_file.h"
#include "tensorflow_serving/config/ssl_config.pb.h"

namespace headrace::serving {
namespace {

constexpr size_t kLongestKeyFile = 4 << 20;

struct FreeOpenSsl {
  void operator()(BIO* b) const { BIO_free(b); }
  void operator()(EVP_PKEY* k) const { EVP_PKEY_free(k); }
  void operator()(X509* x) const { X509_free(x); }
};
template <typename T>
using OpenSslPtr = std::unique_ptr<T, FreeOpenSsl>;

// What OpenSSL says of its last error, which is forgotten.
std::string Reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return text == nullptr ? "no reason is given" : text;
}

// Keys with passwords are refused: a server has nobody to ask.
int NoPassword(char*, int, int, void*) { return -1; }

OpenSslPtr<BIO> Reading(const std::string& pem) {
  return OpenSslPtr<BIO>(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// The next certificate; null at the end, or where it is none.
OpenSslPtr<X509> NextCertificate(BIO* pem) {
  return OpenSslPtr<X509>(
      PEM_read_bio_X509(pem, nullptr, &NoPassword, nullptr));
}

// Whether NextCertificate's null was the end of the text.
bool AtEnd() {
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (at_end) ERR_clear_error();
  return at_end;
}

Status UseCertificates(const std::string& pem, SSL_CTX* context) {
  const auto text = Reading(pem);
  auto first = NextCertificate(text.get());
  if (first == nullptr) {
    return InvalidArgument("server_cert is no certificate in PEM: ", Reason());
  }
  if (SSL_CTX_use_certificate(context, first.get()) != 1) {
    return InvalidArgument("server_cert cannot be used: ", Reason());
  }
  while (auto next = NextCertificate(text.get())) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) {
      return InvalidArgument("server_cert's chain cannot be used: ", Reason());
    }
  }
  if (AtEnd()) return OkStatus();
  return InvalidArgument("server_cert's chain is broken: ", Reason());
}

Status UseKey(const std::string& pem, SSL_CTX* context) {
  const OpenSslPtr<EVP_PKEY> key(PEM_read_bio_PrivateKey(
      Reading(pem).get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) {
    return InvalidArgument("server_key is no private key in PEM: ", Reason());
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return InvalidArgument("server_key does not fit server_cert: ", Reason());
  }
  return OkStatus();
}

Status AskForClients(const std::string& pem, SSL_CTX* context) {
  const auto text = Reading(pem);
  int count = 0;
  while (auto ca = NextCertificate(text.get())) {
    ++count;
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) != 1 ||
        SSL_CTX_add_client_CA(context, ca.get()) != 1) {
      return InvalidArgument("custom_ca cannot be used: ", Reason());
    }
  }
  if (!AtEnd()) return InvalidArgument("custom_ca is broken: ", Reason());
  if (count == 0) {
    return InvalidArgument(
        "client_verify wants certificates in custom_ca, to which clients' are "
        "compared");
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  return OkStatus();
}

// Of what a client offers the one thing that is spoken here.
int ChooseHttp(SSL*, const unsigned char** chosen, unsigned char* length,
               const unsigned char* offered, unsigned int bytes, void*) {
  static constexpr unsigned char kHttp[] = "\x08http/1.1";
  unsigned char* out = nullptr;
  if (SSL_select_next_proto(&out, length, kHttp, sizeof(kHttp) - 1, offered,
                            bytes) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = out;
  return SSL_TLSEXT_ERR_OK;
}

void Arrange(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Buffers of 10,000 silent connections would take 340 MB.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // Sessions that are resumed are of this server; it keeps none of them.
  static constexpr unsigned char kName[] = "headrace";
  SSL_CTX_set_session_id_context(context, kName, sizeof(kName) - 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, &ChooseHttp, nullptr);
}

StatusOr<std::string> PemOf(const std::string& value) {
  StringView path = value;
  if (!absl::ConsumePrefix(&path, "file:")) {
    if (value.size() <= kLongestKeyFile) return value;
    return InvalidArgument("a key of ", value.size(), " bytes is none");
  }
  return ReadSmallFile(std::string(path), kLongestKeyFile);
}

StatusOr<TlsKeys> ReadKeys(const std::string& path) {
  tensorflow::serving::SSLConfig config;
  HR_RETURN_IF_ERROR(ReadProtoFile(path, &config));
  TlsKeys keys;
  HR_ASSIGN_OR_RETURN(keys.server_key, PemOf(config.server_key()));
  HR_ASSIGN_OR_RETURN(keys.server_cert, PemOf(config.server_cert()));
  HR_ASSIGN_OR_RETURN(keys.custom_ca, PemOf(config.custom_ca()));
  keys.client_verify = config.client_verify();
  return keys;
}

}  // namespace

StatusOr<std::shared_ptr<const TlsIdentity>> MakeTlsIdentity(
    const TlsKeys& keys) {
  ERR_clear_error();
  auto made = std::make_shared<TlsIdentity>();
  made->keys = keys;
  made->context.reset(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  SSL_CTX* context = made->context.get();
  if (context == nullptr ||
      SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    return ResourceExhausted("no memory for TLS: ", Reason());
  }
  Arrange(context);
  HR_RETURN_IF_ERROR(UseCertificates(keys.server_cert, context));
  HR_RETURN_IF_ERROR(UseKey(keys.server_key, context));
  if (keys.client_verify) {
    HR_RETURN_IF_ERROR(AskForClients(keys.custom_ca, context));
  }
  return made;
}

StatusOr<std::shared_ptr<TlsFile>> OpenTlsFile(const std::string& path) {
  return TlsFile::Open(
      {path, [path] { return ReadKeys(path); },
       [path,
        first = std::make_shared<std::optional<bool>>()](const TlsKeys& keys)
           -> StatusOr<std::shared_ptr<const TlsIdentity>> {
         if (!first->has_value()) *first = keys.client_verify;
         if (**first != keys.client_verify) {
           return InvalidArgument(
               path, ": client_verify does not change while the server runs");
         }
         auto made = MakeTlsIdentity(keys);
         if (made.ok()) return made;
         return absl::Status(made.status().code(),
                             absl::StrCat(path, ": ", made.status().message()));
       }});
}

}  // namespace headrace::serving
