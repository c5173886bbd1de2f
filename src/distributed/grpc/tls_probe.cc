#include "distributed/grpc/tls_probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/net/acceptor.h"

namespace headrace::distributed {
namespace {

using Kind = TlsFinding::Kind;

template <typename T, void (*free)(T*)>
struct FreeOf {
  void operator()(T* p) const { free(p); }
};
using Context = std::unique_ptr<SSL_CTX, FreeOf<SSL_CTX, &SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, FreeOf<SSL, &SSL_free>>;
using Pem = std::unique_ptr<BIO, FreeOf<BIO, &BIO_free_all>>;
using Signed = std::unique_ptr<X509, FreeOf<X509, &X509_free>>;
using Secret = std::unique_ptr<EVP_PKEY, FreeOf<EVP_PKEY, &EVP_PKEY_free>>;

Pem PemOf(const std::string& text) {
  return Pem(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}
Signed NextOf(const Pem& pem) {
  return Signed(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
}
int AskNobody(char*, int, int, void*) { return -1; }

// With what a channel shows and trusts. Keys that are none are left out: gRPC
// says it of them.
Context ContextOf(const TlsKeys& tls) {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (!context || tls.empty()) return context;
  if (const Pem pem = PemOf(tls.roots)) {
    X509_STORE* store = SSL_CTX_get_cert_store(context.get());
    while (const Signed root = NextOf(pem))
      X509_STORE_add_cert(store, root.get());
  }
  if (const Pem pem = PemOf(tls.certificate)) {
    if (const Signed own = NextOf(pem)) {
      SSL_CTX_use_certificate(context.get(), own.get());
    }
    while (Signed above = NextOf(pem)) {
      if (SSL_CTX_add0_chain_cert(context.get(), above.get())) {
        (void)above.release();
      }
    }
  }
  if (const Pem pem = PemOf(tls.key)) {
    const Secret key(
        PEM_read_bio_PrivateKey(pem.get(), nullptr, &AskNobody, nullptr));
    if (key) SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

class Probe {
 public:
  Probe(const std::string& address, const TlsKeys& tls,
        std::chrono::milliseconds patience)
      : address_(address), tls_(tls), end_(Clock::now() + patience) {}

  TlsFinding Run() {
    const size_t colon = address_.rfind(':');
    if (colon == std::string::npos || colon == 0) return {};
    std::string host = address_.substr(0, colon);
    if (host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    if (!Connect(host, address_.substr(colon + 1))) return {};
    const Context context = ContextOf(tls_);
    if (!context) return {};
    ssl_.reset(SSL_new(context.get()));
    if (!ssl_) return {};
    SSL_set_fd(ssl_.get(), file_.fd());
    static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl_.get(), kHttp2, sizeof(kHttp2));
    X509_VERIFY_PARAM* named = SSL_get0_param(ssl_.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(named, host.c_str()) != 1) {
      SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
      SSL_set1_host(ssl_.get(), host.c_str());
    }
    ERR_clear_error();
    const int shook = Until([this] { return SSL_connect(ssl_.get()); });
    if (shook != 1) return OfHandshake(shook);
    if (tls_.empty()) return AsksForTls();
    // A server looks at the client's certificate last: what comes next is its
    // word on that.
    char byte;
    const int read = Until([&] { return SSL_read(ssl_.get(), &byte, 1); });
    if (read == 1) return {Kind::kFine, ""};
    if (SSL_get_error(ssl_.get(), read) == SSL_ERROR_WANT_READ) return {};
    const unsigned long error = ERR_peek_error();
    return RefusesOwn(ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET
                          ? ERR_reason_error_string(error)
                          : nullptr);
  }

 private:
  bool Connect(const std::string& host, const std::string& port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
      return false;
    }
    const std::unique_ptr<addrinfo, FreeOf<addrinfo, &freeaddrinfo>> all(found);
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
      file_ = OwnedFile(socket(
          a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (file_.fd() < 0) continue;
      if (connect(file_.fd(), a->ai_addr, a->ai_addrlen) == 0) return true;
      if (errno != EINPROGRESS || !Await(POLLOUT)) continue;
      int error = 0;
      socklen_t size = sizeof(error);
      getsockopt(file_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return true;
    }
    return false;
  }
  bool Await(short what) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end_ - Clock::now());
    pollfd p{file_.fd(), what, 0};
    return left.count() > 0 && poll(&p, 1, static_cast<int>(left.count())) > 0;
  }
  template <typename F>
  int Until(F f) {
    while (true) {
      const int result = f();
      if (result == 1) return result;
      const int error = SSL_get_error(ssl_.get(), result);
      const bool reads = error == SSL_ERROR_WANT_READ;
      if (!reads && error != SSL_ERROR_WANT_WRITE) return result;
      if (!Await(reads ? POLLIN : POLLOUT)) return result;
    }
  }

  TlsFinding OfHandshake(int result) const {
    if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_SSL) return {};
    const unsigned long error = ERR_peek_error();
    const int reason = ERR_GET_REASON(error);
    // What it said was TLS, if only that it does not go on.
    const bool is_alert = reason >= SSL_AD_REASON_OFFSET;
    if (tls_.empty())
      return is_alert ? AsksForTls() : TlsFinding{Kind::kFine, ""};
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      return {
          Kind::kRefused,
          address_ + " shows a certificate that this process does not take: " +
              X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get()))};
    }
    if (is_alert) return RefusesOwn(ERR_reason_error_string(error));
    return {Kind::kRefused, address_ +
                                " speaks without TLS, which this "
                                "process has certificates for"};
  }
  TlsFinding AsksForTls() const {
    return {Kind::kRefused,
            address_ + " speaks TLS, and this process has no certificate"};
  }
  TlsFinding RefusesOwn(const char* reason) const {
    return {Kind::kRefused,
            address_ + " does not take the certificate of this process: " +
                (reason == nullptr ? "it ended the connection" : reason)};
  }

  const std::string& address_;
  const TlsKeys& tls_;
  const Clock::time_point end_;
  OwnedFile file_;
  Connection ssl_;
};

}  // namespace

TlsFinding ProbeTls(const std::string& address, const TlsKeys& tls,
                    std::chrono::milliseconds patience) {
  // OpenSSL writes to sockets whose peers may be gone.
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
  TlsFinding found = Probe(address, tls, patience).Run();
  ERR_clear_error();
  return found;
}

}  // namespace headrace::distributed
