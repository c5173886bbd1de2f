#include "distributed/local_transport.h"

#include <map>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/guard.h"
#include "distributed/local_call.h"

namespace headrace::distributed {
namespace {

// For calls that were cancelled to end.
constexpr std::chrono::milliseconds kLastWords{1000};
constexpr std::chrono::milliseconds kLook{20};

}  // namespace

// A place that is listened at. Calls keep it for longer than its listener
// lasts.
class LocalPlace {
 public:
  LocalPlace(ListenOptions options, int port)
      : options_(std::move(options)), port_(port) {}

  int port() const { return port_; }

  // From the loop's thread.
  void Come(const std::shared_ptr<LocalCall>& call) {
    const auto& request = call->request();
    if (options_.authorize) {
      Answer refusal = options_.authorize(call->path(), call->metadata());
      if (!refusal.ok()) return call->Finish(std::move(refusal));
    }
    const auto method = options_.methods.find(call->path());
    if (method == options_.methods.end()) {
      return call->Finish(
          {12, absl::StrCat("there is no method ", call->path())});
    }
    if (request.size() > options_.longest_message) {
      return call->Finish(
          {8, absl::StrCat("Received message larger than max (", request.size(),
                           " vs. ", options_.longest_message, ")")});
    }
    bool stops;
    {
      const MutexLock lock(mutex_);
      stops = stops_;
      if (!stops) {
        call->SetNumber(++numbers_);
        calls_.insert(call);
      }
    }
    // Without the lock, which the end of a call takes.
    if (stops) return call->Finish({14, kServerStops});
    Run([&] {
      // Kept, so that what is thrown is told before it is let go.
      const auto handle = ServerHandle(call);
      const Status s = Guarded("a request", [&] {
        method->second(handle, call->TakeRequest());
        return OkStatus();
      });
      if (!s.ok()) {
        call->Finish({static_cast<int>(s.code()), std::string(s.message())});
      }
    });
  }
  bool Ended(const std::shared_ptr<LocalCall>& call) {
    const MutexLock lock(mutex_);
    calls_.erase(call);
    changed_.NotifyAll();
    return expired_;
  }
  // f(), which the server handed in, unless it has stopped.
  void Run(const std::function<void()>& f) {
    {
      const MutexLock lock(mutex_);
      if (closed_) return;
      ++running_;
    }
    f();
    const MutexLock lock(mutex_);
    --running_;
    changed_.NotifyAll();
  }

  void Stop(Clock::time_point until, bool waits) {
    {
      const MutexLock lock(mutex_);
      if (std::exchange(stops_, true)) return;
    }
    if (waits) WaitForCalls(until);
    {
      const MutexLock lock(mutex_);
      expired_ = true;
    }
    for (const auto& call : Left()) call->CancelAtServer();
    if (waits) WaitForCalls(std::max(until, Clock::now()) + kLastWords);
    for (const auto& call : Left()) call->Finish({14, kServerStops});
    const MutexLock lock(mutex_);
    closed_ = true;
    while (waits && running_ != 0) changed_.Wait(mutex_);
  }

 private:
  // In the order in which they came, so that what ends them is the same in
  // every run.
  struct Before {
    bool operator()(const std::shared_ptr<LocalCall>& a,
                    const std::shared_ptr<LocalCall>& b) const {
      return a->number() < b->number();
    }
  };
  using Calls = std::set<std::shared_ptr<LocalCall>, Before>;

  Calls Left() {
    const MutexLock lock(mutex_);
    return calls_;
  }
  void WaitForCalls(Clock::time_point until) {
    const MutexLock lock(mutex_);
    while (!calls_.empty() && Clock::now() < until) {
      changed_.WaitFor(mutex_, kLook);
    }
  }

  const ListenOptions options_;
  const int port_;
  Mutex mutex_;
  CondVar changed_;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  bool expired_ ABSL_GUARDED_BY(mutex_) = false;  // the time for calls to end
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // the server's functions
  int64_t numbers_ ABSL_GUARDED_BY(mutex_) = 0;
  Calls calls_ ABSL_GUARDED_BY(mutex_);
};

void RunAtServer(const std::shared_ptr<LocalPlace>& place,
                 const std::function<void()>& f) {
  if (f) place->Run(f);
}
bool EndedAtServer(const std::shared_ptr<LocalPlace>& place,
                   const std::shared_ptr<LocalCall>& call) {
  return place->Ended(call);
}

namespace {

class Network : public LocalNetwork,
                public LocalWorld,
                public std::enable_shared_from_this<Network> {
 public:
  Status Start(LocalOptions options) {
    travel_ = std::move(options.travel);
    carry_ = std::move(options.carry);
    ahead_ = options.ahead;
    loop_ = options.loop;
    if (loop_ != nullptr) return OkStatus();
    HR_ASSIGN_OR_RETURN(own_, EventLoop::Real());
    loop_ = own_.get();
    return OkStatus();
  }
  std::unique_ptr<Transport> Of(const std::string& name) override;

  EventLoop& loop() override { return *loop_; }
  size_t ahead() const override { return ahead_; }
  bool is_real() const { return own_ != nullptr; }

  void Carry(const std::string& from, const std::string& to, size_t bytes,
             std::function<void()> f) override {
    if (carry_) return carry_(from, to, bytes, std::move(f));
    Clock::time_point at = loop_->Now();
    if (travel_) {
      const std::optional<Clock::duration> time = travel_(from, to, bytes);
      if (!time) return;
      at += *time;
    }
    loop_->At(at, std::move(f));
  }

  void Arrive(const std::shared_ptr<LocalCall>& call) override {
    std::shared_ptr<LocalPlace> place;
    {
      const MutexLock lock(mutex_);
      const auto found = places_.find(call->to());
      if (found != places_.end()) {
        place = found->second;
      } else if (call->waits()) {
        waiting_.emplace(call->to(), call);
        return;
      }
    }
    if (!place) {
      return call->End({14, absl::StrCat("nobody listens at ", call->to())});
    }
    call->SetPlace(place);
    place->Come(call);
  }

  std::shared_ptr<LocalPlace> Listen(ListenOptions options,
                                     std::string* address, std::string* error) {
    const MutexLock lock(mutex_);
    int port = 0;
    const size_t colon = address->rfind(':');
    if (colon != std::string::npos &&
        absl::SimpleAtoi(address->substr(colon + 1), &port) && port == 0) {
      do {
        *address = absl::StrCat(address->substr(0, colon + 1), ++port);
      } while (places_.contains(*address));
    }
    auto place = std::make_shared<LocalPlace>(std::move(options), port);
    if (address->empty() || !places_.emplace(*address, place).second) {
      *error = absl::StrCat("cannot listen on ", *address,
                            ": Address already in use");
      return nullptr;
    }
    const auto [begin, end] = waiting_.equal_range(*address);
    for (auto i = begin; i != end; ++i) {
      if (const auto call = i->second.lock()) {
        loop_->Soon([self = shared_from_this(), call] { self->Arrive(call); });
      }
    }
    waiting_.erase(begin, end);
    return place;
  }
  void Forget(const std::string& address) {
    const MutexLock lock(mutex_);
    places_.erase(address);
  }

 private:
  decltype(LocalOptions::travel) travel_;
  decltype(LocalOptions::carry) carry_;
  size_t ahead_ = 0;
  std::unique_ptr<EventLoop> own_;
  EventLoop* loop_ = nullptr;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<LocalPlace>> places_
      ABSL_GUARDED_BY(mutex_);
  std::multimap<std::string, std::weak_ptr<LocalCall>> waiting_
      ABSL_GUARDED_BY(mutex_);
};
using NetworkPtr = std::shared_ptr<Network>;

class LocalListener : public Listener {
 public:
  LocalListener(NetworkPtr network, std::string address,
                std::shared_ptr<LocalPlace> place)
      : network_(std::move(network)),
        address_(std::move(address)),
        place_(std::move(place)) {}
  ~LocalListener() override { Stop(Clock::time_point::min()); }
  int port() const override { return place_->port(); }
  void Stop(Clock::time_point until) override {
    place_->Stop(until, network_->is_real());
    // Only once, as another may listen there by now.
    if (!std::exchange(forgotten_, true)) network_->Forget(address_);
  }

 private:
  const NetworkPtr network_;
  const std::string address_;
  const std::shared_ptr<LocalPlace> place_;
  bool forgotten_ = false;
};

class LocalChannel : public Channel {
 public:
  LocalChannel(NetworkPtr network, std::string from, std::string to, bool tls)
      : network_(std::move(network)),
        from_(std::move(from)),
        to_(std::move(to)),
        tls_(tls) {}

  std::shared_ptr<ClientCall> Start(const std::string& path, Bytes request,
                                    const CallOptions& options,
                                    std::function<void(Answer)> done) override {
    const size_t size = request.size();
    auto call = std::make_shared<LocalCall>(network_, from_, to_, path,
                                            std::move(request), options,
                                            std::move(done));
    call->StartTimer();
    std::string fault = Fault(path, options.metadata);
    if (tls_) fault = "there is no TLS within the process";
    if (!fault.empty()) {
      network_->loop().Soon([call, fault] { call->End({3, fault}); });
    } else {
      network_->Carry(from_, to_, size,
                      [network = network_, call] { network->Arrive(call); });
    }
    return call;
  }

 private:
  const NetworkPtr network_;
  const std::string from_, to_;
  const bool tls_;
};

class LocalTransport : public Transport {
 public:
  LocalTransport(NetworkPtr network, std::string name)
      : network_(std::move(network)), name_(std::move(name)) {}

  std::shared_ptr<Channel> Connect(const std::string& address,
                                   const ConnectOptions& options) override {
    return std::make_shared<LocalChannel>(network_, name_, address,
                                          !options.tls.empty());
  }
  std::unique_ptr<Listener> Listen(ListenOptions options,
                                   std::string* error) override {
    if (!options.tls.empty()) {
      *error = "there is no TLS within the process";
      return nullptr;
    }
    std::string address = options.address;
    auto place = network_->Listen(std::move(options), &address, error);
    if (!place) return nullptr;
    return std::make_unique<LocalListener>(network_, address, place);
  }

 private:
  const NetworkPtr network_;
  const std::string name_;
};

std::unique_ptr<Transport> Network::Of(const std::string& name) {
  return std::make_unique<LocalTransport>(shared_from_this(), name);
}

}  // namespace

StatusOr<std::shared_ptr<LocalNetwork>> LocalNetwork::Create(
    LocalOptions options) {
  auto network = std::make_shared<Network>();
  HR_RETURN_IF_ERROR(network->Start(std::move(options)));
  return std::shared_ptr<LocalNetwork>(std::move(network));
}

}  // namespace headrace::distributed
