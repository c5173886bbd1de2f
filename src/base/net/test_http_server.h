// A small HTTP server for tests, whose answers are a function's.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"

namespace headrace {

class TestHttpServer {
 public:
  struct Request {
    std::string method, target;  // target: "/a?b=c"
    std::string headers, body;
    bool Has(StringView text) const {
      return target.find(std::string(text)) != std::string::npos;
    }
  };
  // The bytes of an answer; the connection is closed behind them. A function of
  // its own talks by the socket as it likes.
  using Answer = std::function<std::string(const Request&)>;
  using Talk = std::function<void(int socket, const Request&)>;

  explicit TestHttpServer(Answer answer)
      : TestHttpServer(Talk([answer](int socket, const Request& r) {
          SendAll(socket, answer(r));
        })) {}
  explicit TestHttpServer(Talk talk) : talk_(std::move(talk)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, plain, size) != 0 || listen(listener_, 64) != 0 ||
        getsockname(listener_, plain, &size) != 0) {
      abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Accept(); });
  }
  ~TestHttpServer() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    for (std::thread& t : talks_) t.join();
  }

  int port() const { return port_; }
  std::string place() const { return absl::StrCat("127.0.0.1:", port_); }
  std::string url() const { return "http://" + place(); }
  // For talks that wait: the server is ending.
  bool stopping() const { return stopping_; }
  std::vector<Request> requests() {
    const MutexLock lock(mutex_);
    return requests_;
  }

  static void SendAll(int socket, StringView bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(n);
    }
  }

 private:
  void Accept() {
    for (;;) {
      const int s = accept(listener_, nullptr, nullptr);
      if (s < 0 || stopping_) {
        if (s >= 0) close(s);
        return;
      }
      talks_.emplace_back([this, s] {
        Request request;
        if (Receive(s, &request)) {
          {
            const MutexLock lock(mutex_);
            requests_.push_back(request);
          }
          talk_(s, request);
        }
        shutdown(s, SHUT_WR);
        close(s);
      });
    }
  }

  static bool Receive(int socket, Request* r) {
    std::string bytes;
    size_t end = std::string::npos, length = 0;
    char buffer[65536];
    for (;;) {
      if (end == std::string::npos) {
        end = bytes.find("\r\n\r\n");
        if (end != std::string::npos) {
          end += 4;
          r->headers = absl::AsciiStrToLower(bytes.substr(0, end));
          const size_t at = r->headers.find("content-length:");
          if (at != std::string::npos) {
            length = strtoull(r->headers.c_str() + at + 15, nullptr, 10);
          }
        }
      }
      if (end != std::string::npos && bytes.size() >= end + length) break;
      const ssize_t n = recv(socket, buffer, sizeof(buffer), 0);
      if (n <= 0) return false;
      bytes.append(buffer, n);
    }
    r->body = bytes.substr(end);
    const size_t first = bytes.find(' '), second = bytes.find(' ', first + 1);
    r->method = bytes.substr(0, first);
    r->target = bytes.substr(first + 1, second - first - 1);
    return true;
  }

  const Talk talk_;
  int listener_, port_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  std::vector<Request> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> talks_;
  std::thread thread_;
};

// An answer with its length, or (`claimed`) with another one.
inline std::string HttpText(int status, StringView body,
                            StringView headers = "", int64_t claimed = -1) {
  return absl::StrCat("HTTP/1.1 ", status,
                      " X\r\nConnection: close\r\nContent-Length: ",
                      claimed < 0 ? static_cast<int64_t>(body.size()) : claimed,
                      "\r\n", headers, "\r\n", body);
}

}  // namespace headrace
