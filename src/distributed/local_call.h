// One call within the process, both ends of it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "distributed/event_loop.h"
#include "distributed/transport.h"

namespace headrace::distributed {

class LocalCall;
class LocalPlace;

inline constexpr char kServerStops[] = "server is shutting down";

// What a call asks of its network.
class LocalWorld {
 public:
  virtual ~LocalWorld() = default;
  virtual EventLoop& loop() = 0;
  virtual size_t ahead() const = 0;
  // Runs f when so many bytes have come from one to the other; never where they
  // are lost.
  virtual void Carry(const std::string& from, const std::string& to,
                     size_t bytes, std::function<void()> f) = 0;
  // A call has come to its address.
  virtual void Arrive(const std::shared_ptr<LocalCall>& call) = 0;
};

class LocalCall : public ClientCall,
                  public std::enable_shared_from_this<LocalCall> {
 public:
  LocalCall(std::shared_ptr<LocalWorld> world, std::string from, std::string to,
            std::string path, Bytes request, const CallOptions& options,
            std::function<void(Answer)> done)
      : world_(std::move(world)),
        from_(std::move(from)),
        to_(std::move(to)),
        path_(std::move(path)),
        metadata_(options.metadata),
        deadline_(options.deadline),
        waits_(options.wait_for_ready),
        request_(std::move(request)),
        on_part_(options.on_part),
        done_(std::move(done)) {}

  void StartTimer();
  void SetPlace(std::shared_ptr<LocalPlace> place);
  // Its number at the place that it comes to, once.
  void SetNumber(int64_t number) { number_ = number; }
  int64_t number() const { return number_; }

  const std::string& from() const { return from_; }
  const std::string& to() const { return to_; }
  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  Clock::time_point deadline() const { return deadline_; }
  bool waits() const { return waits_; }
  const Bytes& request() const { return request_; }
  Bytes TakeRequest() { return std::move(request_); }

  // The caller's end. `done` is called where it was not.
  void Cancel() override;
  void End(Answer answer);

  // The server's end.
  void OnCancel(std::function<void()> f);
  void Send(Bytes part, std::function<void(bool)> sent);
  void Finish(Answer answer);
  void CancelAtServer();

 private:
  void Deliver(Bytes part);
  void HandOut(Bytes part);
  void Taken(size_t size);
  bool HoldsUp() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return parts_ > 0 && unread_ >= world_->ahead();
  }
  void Return(Answer answer);

  const std::shared_ptr<LocalWorld> world_;
  const std::string from_, to_, path_;
  const Metadata metadata_;
  const Clock::time_point deadline_;
  const bool waits_;
  int64_t number_ = 0;
  Bytes request_;
  const decltype(CallOptions::on_part) on_part_;

  Mutex mutex_;
  EventLoop::Event timer_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<LocalPlace> place_ ABSL_GUARDED_BY(mutex_);  // once it came
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;                 // for the caller
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;              // by the server
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;  // which the server knows
  // Parts that were sent and are not read, and of them those that have come
  // behind the one that is being read.
  size_t parts_ ABSL_GUARDED_BY(mutex_) = 0, unread_
                                             ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Bytes> waiting_ ABSL_GUARDED_BY(mutex_);
  bool reads_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(Answer)> done_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mutex_);
  std::function<void(bool)> sent_ ABSL_GUARDED_BY(mutex_);
  // That waits for parts to be read.
  std::unique_ptr<Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

// What the method holds of it.
std::shared_ptr<ServerCall> ServerHandle(std::shared_ptr<LocalCall> call);

// Of the place: runs what the server handed in.
void RunAtServer(const std::shared_ptr<LocalPlace>& place,
                 const std::function<void()>& f);
// Forgets a call; whether the server's time to end it had passed.
bool EndedAtServer(const std::shared_ptr<LocalPlace>& place,
                   const std::shared_ptr<LocalCall>& call);

}  // namespace headrace::distributed
