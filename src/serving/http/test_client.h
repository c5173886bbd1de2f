// A client for tests, which says what it likes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/status.h"

namespace headrace::serving {

class TestClient {
 public:
  explicit TestClient(int port, int receive_buffer = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                 sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address),
                         sizeof(address)) == 0;
  }
  ~TestClient() { Close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  // False where the server has closed.
  bool Say(StringView text) {
    while (!text.empty()) {
      const ssize_t n = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(n);
    }
    return true;
  }

  struct Answer {
    int status = 0;  // 0: the connection ended, or nothing came for a minute
    std::string head, body;
  };
  Answer Hear(bool without_body = false) {
    Answer answer;
    size_t end;
    while ((end = heard_.find("\r\n\r\n")) == std::string::npos) {
      if (!More()) return answer;
    }
    answer.head = heard_.substr(0, end + 2);
    heard_.erase(0, end + 4);
    size_t length = 0;
    const std::string lower = absl::AsciiStrToLower(answer.head);
    const size_t at = lower.find("content-length: ");
    if (at != std::string::npos && !without_body) {
      length = std::strtoull(lower.c_str() + at + 16, nullptr, 10);
    }
    while (heard_.size() < length) {
      if (!More()) return answer;
    }
    answer.body = heard_.substr(0, length);
    heard_.erase(0, length);
    answer.status = std::atoi(answer.head.c_str() + 9);
    return answer;
  }
  Answer Ask(StringView text) {
    Say(text);
    return Hear();
  }
  // Whether the server closes, within a minute, after what it still says.
  bool Ends() {
    while (More()) continue;
    return ended_;
  }

 private:
  bool More() {
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, 60000) <= 0) return false;
    char bytes[4096];
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
    ended_ = n <= 0;
    if (n > 0) heard_.append(bytes, n);
    return n > 0;
  }

  int fd_ = -1;
  bool connected_ = false, ended_ = false;
  std::string heard_;
};

// A POST with a body.
inline std::string PostText(StringView path, StringView body,
                            StringView headers = "") {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", headers,
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

}  // namespace headrace::serving
