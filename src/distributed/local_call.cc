#include "distributed/local_call.h"

#include "absl/strings/str_cat.h"

namespace headrace::distributed {
namespace {

class LocalServerCall : public ServerCall {
 public:
  explicit LocalServerCall(std::shared_ptr<LocalCall> call)
      : call_(std::move(call)) {}
  ~LocalServerCall() override {
    call_->Finish({1, "the call was let go without an answer"});
  }
  const Metadata& metadata() const override { return call_->metadata(); }
  std::string peer() const override { return call_->from(); }
  Clock::time_point deadline() const override { return call_->deadline(); }
  void OnCancel(std::function<void()> f) override {
    call_->OnCancel(std::move(f));
  }
  void Send(Bytes part, std::function<void(bool)> sent) override {
    call_->Send(std::move(part), std::move(sent));
  }
  void Finish(Answer answer) override { call_->Finish(std::move(answer)); }

 private:
  const std::shared_ptr<LocalCall> call_;
};

}  // namespace

std::shared_ptr<ServerCall> ServerHandle(std::shared_ptr<LocalCall> call) {
  return std::make_shared<LocalServerCall>(std::move(call));
}

void LocalCall::StartTimer() {
  if (deadline_ == Clock::time_point::max()) return;
  const auto began = world_->loop().Now();
  const MutexLock lock(mutex_);
  timer_ = world_->loop().At(deadline_, [self = shared_from_this(), began] {
    const std::chrono::duration<double> waited =
        self->world_->loop().Now() - began;
    self->End({4, absl::StrCat("Deadline Exceeded after ", waited.count(),
                               " s (", self->path_, " at ", self->to_, ")")});
  });
}

void LocalCall::SetPlace(std::shared_ptr<LocalPlace> place) {
  const MutexLock lock(mutex_);
  place_ = std::move(place);
}

void LocalCall::Cancel() {
  world_->loop().Soon([self = shared_from_this()] {
    self->End({1, "CANCELLED"});
  });
}

void LocalCall::End(Answer answer) {
  std::function<void(Answer)> done;
  EventLoop::Event timer;
  std::shared_ptr<LocalPlace> place;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    done = std::move(done_);
    done_ = nullptr;
    timer = timer_;
    place = place_;
  }
  world_->loop().Forget(timer);
  if (place) {
    world_->Carry(from_, to_, 0,
                  [self = shared_from_this()] { self->CancelAtServer(); });
  }
  done(std::move(answer));
}

void LocalCall::OnCancel(std::function<void()> f) {
  std::function<void()> before;
  {
    const MutexLock lock(mutex_);
    if (!cancelled_) {
      before = std::move(on_cancel_);
      on_cancel_ = nullptr;
      if (!finished_) on_cancel_ = std::move(f);
      return;
    }
  }
  f();
}

void LocalCall::CancelAtServer() {
  std::function<void()> on_cancel;
  std::function<void(bool)> sent;
  std::shared_ptr<LocalPlace> place;
  bool has_answered = false;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(cancelled_, true)) return;
    on_cancel = std::move(on_cancel_);
    on_cancel_ = nullptr;
    sent = std::move(sent_);
    sent_ = nullptr;
    place = place_;
    has_answered = answer_ != nullptr;
    answer_ = nullptr;
  }
  if (has_answered) EndedAtServer(place, shared_from_this());
  RunAtServer(place, on_cancel);
  if (sent) RunAtServer(place, [&] { sent(false); });
}

void LocalCall::Send(Bytes part, std::function<void(bool)> sent) {
  bool goes = false, waits = false;
  const size_t size = part.size();
  {
    const MutexLock lock(mutex_);
    goes = on_part_ && !finished_ && !cancelled_ && !sent_;
    if (goes) {
      ++parts_;
      unread_ += size;
      waits = HoldsUp();
      if (waits) sent_ = sent;
    }
  }
  if (!goes) {
    if (!on_part_) End({13, absl::StrCat(path_, " answers in parts")});
    return sent(false);
  }
  world_->Carry(to_, from_, size,
                [self = shared_from_this(), part = std::move(part)] {
                  self->Deliver(part);
                });
  if (waits) return;
  world_->loop().Soon([self = shared_from_this(), sent = std::move(sent)] {
    std::shared_ptr<LocalPlace> place;
    bool goes_on;
    {
      const MutexLock lock(self->mutex_);
      place = self->place_;
      goes_on = !self->cancelled_;
    }
    RunAtServer(place, [&] { sent(goes_on); });
  });
}

void LocalCall::Deliver(Bytes part) {
  {
    const MutexLock lock(mutex_);
    if (ended_) return;
    if (std::exchange(reads_, true)) {
      waiting_.push_back(std::move(part));
      return;
    }
  }
  HandOut(std::move(part));
}

void LocalCall::HandOut(Bytes part) {
  const size_t size = part.size();
  on_part_(std::move(part), [self = shared_from_this(), size] {
    self->world_->loop().Soon([self, size] { self->Taken(size); });
  });
}

void LocalCall::Taken(size_t size) {
  std::function<void(bool)> sent;
  std::unique_ptr<Answer> answer;
  std::shared_ptr<LocalPlace> place;
  std::optional<Bytes> next;
  {
    const MutexLock lock(mutex_);
    if (!reads_) return;
    --parts_;
    unread_ -= size;
    reads_ = !waiting_.empty() && !ended_;
    if (reads_) {
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (!HoldsUp()) {
      sent = std::move(sent_);
      sent_ = nullptr;
    }
    if (parts_ == 0) answer = std::move(answer_);
    place = place_;
  }
  if (answer) Return(*std::move(answer));
  if (sent) RunAtServer(place, [&] { sent(true); });
  if (next) HandOut(*std::move(next));
}

void LocalCall::Finish(Answer answer) {
  std::function<void()> unused;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(finished_, true)) return;
    unused = std::move(on_cancel_);
    on_cancel_ = nullptr;
    if (parts_ > 0 && !cancelled_) {
      answer_ = std::make_unique<Answer>(std::move(answer));
      return;
    }
  }
  Return(std::move(answer));
}

// Finished, and all parts are read.
void LocalCall::Return(Answer answer) {
  std::shared_ptr<LocalPlace> place;
  {
    const MutexLock lock(mutex_);
    place = place_;
  }
  if (place && EndedAtServer(place, shared_from_this()) && answer.code == 1) {
    answer = {14, kServerStops};
  }
  const std::string fault = Fault(answer.metadata);
  if (!fault.empty()) answer = {13, fault};
  if (!answer.ok()) answer.body = Bytes();
  const size_t size = answer.body.size() + answer.message.size();
  world_->Carry(to_, from_, size,
                [self = shared_from_this(), answer = std::move(answer)] {
                  self->End(answer);
                });
}

}  // namespace headrace::distributed
