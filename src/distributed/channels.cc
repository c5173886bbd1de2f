#include "distributed/channels.h"

#include <atomic>

namespace headrace::distributed {
namespace {

constexpr int kUnavailable = 14;
// How often a peer is asked at most.
constexpr int kTries = 3;

// A call that may be made again.
class RepeatedCall : public ClientCall,
                     public std::enable_shared_from_this<RepeatedCall> {
 public:
  RepeatedCall(std::shared_ptr<Channel> channel, std::string path,
               Bytes request, CallOptions options,
               std::function<void(Answer)> done)
      : channel_(std::move(channel)),
        path_(std::move(path)),
        request_(std::move(request)),
        options_(std::move(options)),
        done_(std::move(done)) {}

  void Try() {
    const int number = number_;
    auto call = channel_->Start(path_, request_, options_,
                                [self = shared_from_this()](Answer answer) {
                                  self->Answered(std::move(answer));
                                });
    bool ends = false;
    {
      const MutexLock lock(mutex_);
      // It may have ended by now, and another be there.
      if (number >= held_) {
        call_ = call;
        held_ = number;
      }
      ends = is_cancelled_;
    }
    if (ends) call->Cancel();
  }
  void Cancel() override {
    std::shared_ptr<ClientCall> call;
    {
      const MutexLock lock(mutex_);
      is_cancelled_ = true;
      call = call_;
    }
    if (call) call->Cancel();
  }

 private:
  void Answered(Answer answer) {
    bool again = answer.code == kUnavailable && number_ < kTries &&
                 Clock::now() < options_.deadline;
    {
      const MutexLock lock(mutex_);
      again = again && !is_cancelled_;
    }
    if (!again) return done_(std::move(answer));
    ++number_;
    // A peer that is being started again is waited for.
    options_.wait_for_ready = true;
    Try();
  }

  const std::shared_ptr<Channel> channel_;
  const std::string path_;
  const Bytes request_;
  CallOptions options_;
  const std::function<void(Answer)> done_;
  Mutex mutex_;
  std::atomic<int> number_{1};            // of the try
  int held_ ABSL_GUARDED_BY(mutex_) = 0;  // of that which is in call_
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<ClientCall> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

Channels::Channels(Transport& transport, ConnectOptions options,
                   std::optional<PeerVersion> own, bool allows_tensorflow)
    : transport_(transport),
      options_(std::move(options)),
      own_(std::move(own)),
      allows_tensorflow_(allows_tensorflow) {}

std::shared_ptr<Channel> Channels::To(const std::string& address) {
  const MutexLock lock(mutex_);
  std::shared_ptr<Channel>& channel = channels_[address];
  if (!channel) {
    ConnectOptions options = options_;
    options.probes = options.probes && !allows_tensorflow_;
    channel = transport_.Connect(address, options);
  }
  return channel;
}

void Channels::Forget(const std::string& address) {
  const MutexLock lock(mutex_);
  channels_.erase(address);
}

std::shared_ptr<ClientCall> Channels::Start(const std::string& address,
                                            const RemoteMethod& method,
                                            Bytes request, CallOptions options,
                                            std::function<void(Answer)> done) {
  if (options.deadline == Clock::time_point::max()) {
    options.deadline = Clock::now() + method.deadline;
  }
  if (method.introduces && own_) {
    Introduce(*own_, &options.metadata);
    done = [own = *own_, address, allows = allows_tensorflow_,
            done = std::move(done)](Answer answer) {
      if (answer.ok()) {
        const Status s = CheckPeer(own, answer.metadata, address, allows);
        if (!s.ok()) {
          answer = {static_cast<int>(s.code()), std::string(s.message())};
        }
      }
      done(std::move(answer));
    };
  }
  const std::shared_ptr<Channel> channel = To(address);
  // Parts that were handed out cannot be taken back.
  if (!method.again || options.on_part) {
    return channel->Start(method.path, std::move(request), options,
                          std::move(done));
  }
  auto call =
      std::make_shared<RepeatedCall>(channel, method.path, std::move(request),
                                     std::move(options), std::move(done));
  call->Try();
  return call;
}

}  // namespace headrace::distributed
