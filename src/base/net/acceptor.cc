#include "base/net/acceptor.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "absl/strings/numbers.h"
#include "base/threads.h"

namespace headrace {
namespace {

constexpr int kBacklog = 4096;
constexpr int kPortTries = 16;
// Before another try where files have run out, in milliseconds.
constexpr int kPauseMs = 10;
constexpr int kListenFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

template <typename Address>
bool Bind(int fd, const Address& address) {
  return bind(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0;
}

StatusOr<OwnedFile> ListenOnPort(int port) {
  for (const int family : {AF_INET6, AF_INET}) {
    OwnedFile s(socket(family, kListenFlags, 0));
    if (s.fd() < 0) continue;
    const int on = 1, off = 0;
    setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    bool bound;
    if (family == AF_INET6) {
      setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(port);
      bound = Bind(s.fd(), address);
    } else {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      bound = Bind(s.fd(), address);
    }
    if (bound && listen(s.fd(), kBacklog) == 0) return s;
  }
  return Unavailable("cannot listen on port ", port, ": ",
                     std::strerror(errno));
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

StatusOr<Addresses> AddressesOf(const std::string& host,
                                const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error == 0) return Addresses(found, &freeaddrinfo);
  return Unavailable("cannot listen on ", address, ": ", gai_strerror(error));
}

// An error of errno where it cannot listen there.
OwnedFile ListenThere(addrinfo* there, int port) {
  OwnedFile s(socket(there->ai_family, kListenFlags, 0));
  if (s.fd() < 0) return s;
  const int on = 1;
  setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (there->ai_family == AF_INET6) {
    auto* at = reinterpret_cast<sockaddr_in6*>(there->ai_addr);
    at->sin6_port = htons(port);
    const int alone = !IN6_IS_ADDR_UNSPECIFIED(&at->sin6_addr);
    setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &alone, sizeof(alone));
  } else {
    reinterpret_cast<sockaddr_in*>(there->ai_addr)->sin_port = htons(port);
  }
  if (bind(s.fd(), there->ai_addr, there->ai_addrlen) != 0 ||
      listen(s.fd(), kBacklog) != 0) {
    const int error = errno;
    s.Reset(-1);
    errno = error;
  }
  return s;
}

// At all addresses that the machine has, under one port; 0 or an errno.
int ListenAtAll(addrinfo* first, int port, std::vector<OwnedFile>* listeners) {
  listeners->clear();
  int error = 0;
  for (addrinfo* there = first; there != nullptr; there = there->ai_next) {
    OwnedFile listener = ListenThere(there, port);
    if (listener.fd() < 0) {
      error = errno;
      // Where another has it, clients of that address would reach the other.
      if (error == EADDRINUSE) return error;
      continue;
    }
    if (port == 0) port = PortOf(listener.fd());
    listeners->push_back(std::move(listener));
  }
  return listeners->empty() ? error : 0;
}

struct HostAndPort {
  std::string host;
  int port;
};

// "HOST:PORT", "[::1]:PORT", ":PORT".
StatusOr<HostAndPort> Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostAndPort split;
  if (colon != std::string::npos) {
    split.host = address.substr(0, colon);
    if (split.host.size() > 2 && split.host.front() == '[' &&
        split.host.back() == ']') {
      split.host = split.host.substr(1, split.host.size() - 2);
    }
    const std::string port = address.substr(colon + 1);
    if (absl::SimpleAtoi(port, &split.port) && split.port >= 0 &&
        split.port <= 65535) {
      return split;
    }
  }
  return InvalidArgument("no address of the form host:port: ", address);
}

// Whether a server that has ended left its socket there.
bool IsLeftOver(const sockaddr_un& address) {
  struct stat info;
  if (lstat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    return false;
  }
  const OwnedFile s(socket(AF_UNIX, kListenFlags, 0));
  return connect(s.fd(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) != 0 &&
         errno == ECONNREFUSED;
}

StatusOr<OwnedFile> ListenOnPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("the path of a Unix socket has at most ",
                           sizeof(address.sun_path) - 1, " bytes: ", path);
  }
  path.copy(address.sun_path, path.size());
  if (IsLeftOver(address)) unlink(path.c_str());
  OwnedFile s(socket(AF_UNIX, kListenFlags, 0));
  if (Bind(s.fd(), address) && listen(s.fd(), kBacklog) == 0) return s;
  return Unavailable("cannot listen on ", path, ": ", std::strerror(errno));
}

}  // namespace

void OwnedFile::Reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

int RaisedFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
}

class Acceptor::Impl {
 public:
  Impl(OwnedFile listener, int port, std::string path)
      : listener_(std::move(listener)), port_(port), path_(std::move(path)) {}

  int port() const { return port_; }

  Status Start(std::function<void(int)> take, std::function<void()> full) {
    take_ = std::move(take);
    full_ = std::move(full);
    wake_.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (wake_.fd() < 0) {
      return Unavailable("no eventfd: ", std::strerror(errno));
    }
    HR_ASSIGN_OR_RETURN(thread_, threads::Start([this] { Run(); }));
    return OkStatus();
  }

  void Close() {
    if (thread_.joinable()) {
      closing_ = true;
      const uint64_t one = 1;
      (void)!write(wake_.fd(), &one, sizeof(one));
      thread_.join();
    }
    if (listener_.fd() >= 0 && !path_.empty()) unlink(path_.c_str());
    listener_.Reset(-1);
  }

 private:
  void Run() {
    pollfd wait[2] = {{listener_.fd(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
    while (!closing_) {
      if (poll(wait, 2, -1) < 0 && errno != EINTR) return;
      while (!closing_ && AcceptOne()) continue;
    }
  }

  // False where there is none to accept.
  bool AcceptOne() {
    const int fd =
        accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) return true;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        full_();
        pollfd wait{wake_.fd(), POLLIN, 0};
        poll(&wait, 1, kPauseMs);
      }
      return false;
    }
    if (path_.empty()) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    take_(fd);
    return true;
  }

  OwnedFile listener_, wake_;
  const int port_;
  const std::string path_;
  std::function<void(int)> take_;
  std::function<void()> full_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

Acceptor::Acceptor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Acceptor::~Acceptor() { Close(); }

StatusOr<std::unique_ptr<Acceptor>> Acceptor::OnPort(int port) {
  HR_ASSIGN_OR_RETURN(OwnedFile listener, ListenOnPort(port));
  const int bound = PortOf(listener.fd());
  return std::unique_ptr<Acceptor>(new Acceptor(
      std::make_unique<Impl>(std::move(listener), bound, std::string())));
}

StatusOr<std::vector<std::unique_ptr<Acceptor>>> Acceptor::OnAddress(
    const std::string& address) {
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  HR_ASSIGN_OR_RETURN(HostAndPort at, Split(address));
  if (at.host.empty()) {
    HR_ASSIGN_OR_RETURN(acceptors.emplace_back(), OnPort(at.port));
    return acceptors;
  }
  HR_ASSIGN_OR_RETURN(const Addresses all, AddressesOf(at.host, address));
  std::vector<OwnedFile> listeners;
  // A port that one address has free may be taken at another.
  int error = EADDRINUSE;
  for (int i = 0; i < kPortTries && error == EADDRINUSE; ++i) {
    error = ListenAtAll(all.get(), at.port, &listeners);
    if (at.port != 0) break;
  }
  if (error != 0) {
    return Unavailable("cannot listen on ", address, ": ",
                       std::strerror(error));
  }
  for (OwnedFile& listener : listeners) {
    const int port = PortOf(listener.fd());
    acceptors.emplace_back(new Acceptor(
        std::make_unique<Impl>(std::move(listener), port, std::string())));
  }
  return acceptors;
}

bool Acceptor::IsHere(const std::string& address) {
  const StatusOr<HostAndPort> at = Split(address);
  if (!at.ok() || at->host.empty()) return true;
  const StatusOr<Addresses> all = AddressesOf(at->host, address);
  if (!all.ok()) return false;
  for (addrinfo* there = all->get(); there != nullptr; there = there->ai_next) {
    if (ListenThere(there, 0).fd() >= 0 || errno != EADDRNOTAVAIL) return true;
  }
  return false;
}

StatusOr<std::unique_ptr<Acceptor>> Acceptor::OnPath(const std::string& path) {
  HR_ASSIGN_OR_RETURN(OwnedFile listener, ListenOnPath(path));
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::make_unique<Impl>(std::move(listener), 0, path)));
}

int Acceptor::port() const { return impl_->port(); }
Status Acceptor::Start(std::function<void(int)> take,
                       std::function<void()> full) {
  return impl_->Start(std::move(take), std::move(full));
}
void Acceptor::Close() { impl_->Close(); }

}  // namespace headrace
