// TLS over a connection's socket. A private header of the room.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

struct ssl_st;
struct ssl_ctx_st;

namespace headrace::serving {

// The server's side, of one thread. The handshake is part of the first Receive.
class TlsStream {
 public:
  // Null where there is no memory. The socket does not block.
  static std::unique_ptr<TlsStream> Make(ssl_ctx_st* context, int socket);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // As recv() and send(): -1 with errno EAGAIN where they would block, and
  // with another one where the connection is broken. What was not sent is to be
  // sent again, with as many bytes.
  ssize_t Receive(char* into, size_t room);
  ssize_t Send(const char* bytes, size_t count);
  // Whether the last Receive waits for room to write.
  bool read_waits_to_write() const { return read_waits_to_write_; }
  // Tells the client, as far as it listens, that no more comes.
  void End();

 private:
  explicit TlsStream(ssl_st* session) : session_(session) {}
  ssize_t Failed(int result);

  ssl_st* const session_;
  bool read_waits_to_write_ = false, broken_ = false, ended_ = false;
};

}  // namespace headrace::serving
