#include "serving/http/tls_stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <climits>
#include <new>

namespace headrace::serving {

std::unique_ptr<TlsStream> TlsStream::Make(ssl_ctx_st* context, int socket) {
  SSL* session = SSL_new(context);
  if (session == nullptr || SSL_set_fd(session, socket) != 1) {
    SSL_free(session);
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_accept_state(session);
  std::unique_ptr<TlsStream> made(new (std::nothrow) TlsStream(session));
  if (made == nullptr) SSL_free(session);
  return made;
}

TlsStream::~TlsStream() { SSL_free(session_); }

ssize_t TlsStream::Failed(int result) {
  const int error = SSL_get_error(session_, result);
  read_waits_to_write_ = error == SSL_ERROR_WANT_WRITE;
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    errno = EAGAIN;
    return -1;
  }
  broken_ = true;
  // The next connection of the thread is not to find it.
  ERR_clear_error();
  errno = EPROTO;
  return -1;
}

ssize_t TlsStream::Receive(char* into, size_t room) {
  ERR_clear_error();
  read_waits_to_write_ = false;
  const int n = SSL_read(session_, into, std::min<size_t>(room, INT_MAX));
  return n > 0 ? n : Failed(n);
}

ssize_t TlsStream::Send(const char* bytes, size_t count) {
  ERR_clear_error();
  const int n = SSL_write(session_, bytes, std::min<size_t>(count, INT_MAX));
  if (n > 0) return n;
  const ssize_t failed = Failed(n);
  if (failed == 0) errno = EPIPE;
  return -1;
}

void TlsStream::End() {
  if (broken_ || ended_ || !SSL_is_init_finished(session_)) return;
  ended_ = true;
  ERR_clear_error();
  SSL_shutdown(session_);
  ERR_clear_error();
}

}  // namespace headrace::serving
