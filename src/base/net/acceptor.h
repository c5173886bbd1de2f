// A place that is listened at, and the thread that takes the connections there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace headrace {

// A socket or another file that is closed with it.
class OwnedFile {
 public:
  explicit OwnedFile(int fd = -1) : fd_(fd) {}
  ~OwnedFile() { Reset(-1); }
  OwnedFile(OwnedFile&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  OwnedFile& operator=(OwnedFile&& o) noexcept {
    Reset(std::exchange(o.fd_, -1));
    return *this;
  }
  void Reset(int fd);
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Raises the process' limit on open files to its hard limit, and tells it; at
// most a million, a number that is enough for all who count in it.
int RaisedFileLimit();

class Acceptor {
 public:
  // Listens on all addresses, "::" first; port 0: a free one. Unavailable where
  // it cannot.
  static StatusOr<std::unique_ptr<Acceptor>> OnPort(int port);
  // Listens at "HOST:PORT", at each of the host's addresses that this machine
  // lets it, under one port; ":PORT" and port 0 as OnPort. InvalidArgument
  // where it is no such text, Unavailable where the host has no address or none
  // can be listened at.
  static StatusOr<std::vector<std::unique_ptr<Acceptor>>> OnAddress(
      const std::string& address);
  // Whether this machine has one of the addresses of the host in "HOST:PORT":
  // not where the host has none, or others alone. True of what is no such text,
  // which OnAddress refuses.
  static bool IsHere(const std::string& address);
  // A Unix socket of that path, in place of one that nobody listens at. It is
  // deleted in the end.
  static StatusOr<std::unique_ptr<Acceptor>> OnPath(const std::string& path);
  // Close().
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  int port() const;  // 0: a path

  // Has `take` called with each connection, whose socket does not block and is
  // the called one's to close. `full`: files have run out, so that connections
  // wait; called again and again until they do not.
  Status Start(std::function<void(int socket)> take,
               std::function<void()> full);
  // No more is taken, and none is waited for. For one thread at a time.
  void Close();

 private:
  class Impl;
  explicit Acceptor(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
