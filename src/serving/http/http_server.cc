#include "serving/http/http_server.h"

#include <algorithm>

#include "base/cpu_count.h"
#include "base/net/acceptor.h"
#include "serving/http/http_loop.h"

namespace headrace::serving {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

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
    const int files = RaisedFileLimit();
    most_ = options.most_connections > 0 ? options.most_connections : files / 2;
    int threads = options.threads;
    if (threads <= 0) threads = 4 * AvailableCpus();
    HR_ASSIGN_OR_RETURN(acceptor_, Acceptor::OnPort(options.port));
    for (int i = 0; i < threads; ++i) {
      HR_ASSIGN_OR_RETURN(auto loop,
                          HttpLoop::Start(options, handler, &counts_));
      loops_.push_back(std::move(loop));
    }
    return acceptor_->Start([this](int socket) { Take(socket); },
                            [this] { Evict(); });
  }

  int port() const { return acceptor_->port(); }
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
    if (acceptor_) acceptor_->Close();
  }

  void Take(int socket) {
    ++counts_.waiting;
    if (++counts_.open - counts_.leaving > most_) Evict();
    Emptiest()->Add(socket);
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

  int most_ = 0;
  size_t turn_ = 0;
  HttpCounts counts_;
  Mutex stop_mutex_;  // one thread ends the others
  std::vector<std::unique_ptr<HttpLoop>> loops_;
  std::unique_ptr<Acceptor> acceptor_;
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
