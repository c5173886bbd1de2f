#include "serving/http/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/cpu_count.h"
#include "base/threads.h"
#include "serving/http/http_loop.h"

namespace headrace::serving {

// A file descriptor that is closed with it.
class ListenSocket {
 public:
  explicit ListenSocket(int fd = -1) : fd_(fd) {}
  ~ListenSocket() { Reset(-1); }
  ListenSocket(ListenSocket&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  ListenSocket& operator=(ListenSocket&& o) noexcept {
    Reset(std::exchange(o.fd_, -1));
    return *this;
  }
  void Reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Files that connections leave for all else: models, logs, gRPC.
constexpr rlim_t kOtherFiles = 128;
constexpr int kBacklog = 4096;
// Before another try where files have run out.
constexpr milliseconds kPause{10};

// Raises the limit on open files; gives how many connections it leaves.
int ConnectionsLeft() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 512;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  const rlim_t files = std::min<rlim_t>(limit.rlim_cur, 1 << 20);
  return static_cast<int>(
      std::max(files / 2, files - std::min(files, kOtherFiles)));
}

template <typename Address>
bool Bind(int fd, const Address& address) {
  return bind(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0;
}

StatusOr<ListenSocket> Listen(int port) {
  const int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  for (const int family : {AF_INET6, AF_INET}) {
    ListenSocket s(socket(family, flags, 0));
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

}  // namespace

class HttpServer::Impl {
 public:
  ~Impl() { Stop(); }

  Status Start(HttpOptions options, const HttpHandler& handler) {
    if (options.port < 0 || options.port > 65535) {
      return InvalidArgument("port ", options.port, " is not in 0..65535");
    }
    if (options.timeout <= milliseconds(0)) {
      return InvalidArgument("a timeout of ", options.timeout.count(),
                             " ms is not positive");
    }
    const int left = ConnectionsLeft();
    most_ = options.most_connections > 0 ? options.most_connections : left;
    int threads = options.threads;
    if (threads <= 0) threads = 4 * AvailableCpus();
    HR_ASSIGN_OR_RETURN(listener_, Listen(options.port));
    port_ = PortOf(listener_.fd());
    wake_.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (wake_.fd() < 0) {
      return Unavailable("no eventfd: ", std::strerror(errno));
    }
    for (int i = 0; i < threads; ++i) {
      HR_ASSIGN_OR_RETURN(auto loop,
                          HttpLoop::Start(options, handler, &counts_));
      loops_.push_back(std::move(loop));
    }
    HR_ASSIGN_OR_RETURN(acceptor_, threads::Start([this] { Accept(); }));
    return OkStatus();
  }

  int port() const { return port_; }
  int connections() const { return counts_.open.load(); }

  void Drain(Clock::time_point deadline) {
    CloseListener();
    Tell([](Mailbox::Mail& mail) { mail.drain = true; });
    if (WaitForNone(deadline)) return;
    Tell([](Mailbox::Mail& mail) { mail.abandon = true; });
    // For the last answers to leave.
    WaitForNone(Clock::now() + milliseconds(1000));
  }

  void Stop() {
    CloseListener();
    for (auto& loop : loops_) {
      loop->mailbox().Post([](Mailbox::Mail& mail) { mail.stop = true; });
    }
    const MutexLock lock(stop_mutex_);
    for (auto& loop : loops_) loop->Stop();
  }

 private:
  template <typename F>
  void Tell(F change) {
    for (auto& loop : loops_) loop->mailbox().Post(change);
  }

  bool WaitForNone(Clock::time_point deadline) {
    const MutexLock lock(counts_.mutex);
    while (counts_.waiting.load() > 0) {
      const auto left =
          std::chrono::ceil<milliseconds>(deadline - Clock::now());
      if (left <= milliseconds(0)) return false;
      counts_.none_waits.WaitFor(counts_.mutex,
                                 std::min(left, milliseconds(1000)));
    }
    return true;
  }

  void CloseListener() {
    const MutexLock lock(stop_mutex_);
    if (!acceptor_.joinable()) return;
    closing_ = true;
    const uint64_t one = 1;
    (void)!write(wake_.fd(), &one, sizeof(one));
    acceptor_.join();
    listener_.Reset(-1);
  }

  void Accept() {
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
        Evict();
        pollfd wait{wake_.fd(), POLLIN, 0};
        poll(&wait, 1, kPause.count());
      }
      return false;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    ++counts_.waiting;
    if (++counts_.open - counts_.leaving > most_) Evict();
    Emptiest()->Add(fd);
    return true;
  }

  HttpLoop* Emptiest() {
    // Of equals the one whose turn it is.
    ++turn_;
    HttpLoop* best = nullptr;
    for (size_t i = 0; i < loops_.size(); ++i) {
      HttpLoop* loop = loops_[(turn_ + i) % loops_.size()].get();
      if (best == nullptr || loop->connections() < best->connections()) {
        best = loop;
      }
    }
    return best;
  }

  void Evict() {
    auto fullest = std::max_element(
        loops_.begin(), loops_.end(), [](const auto& a, const auto& b) {
          return a->connections() < b->connections();
        });
    (*fullest)->EvictOne();
  }

  int port_ = 0, most_ = 0;
  size_t turn_ = 0;
  HttpCounts counts_;
  ListenSocket listener_, wake_;
  std::atomic<bool> closing_{false};
  Mutex stop_mutex_;  // one thread ends the others
  std::vector<std::unique_ptr<HttpLoop>> loops_;
  std::thread acceptor_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const HttpOptions& options, HttpHandler handler) {
  auto impl = std::make_unique<Impl>();
  HR_RETURN_IF_ERROR(impl->Start(options, handler));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }
int HttpServer::connections() const { return impl_->connections(); }
void HttpServer::Drain(std::chrono::steady_clock::time_point deadline) {
  impl_->Drain(deadline);
}
void HttpServer::Stop() { impl_->Stop(); }

}  // namespace headrace::serving
