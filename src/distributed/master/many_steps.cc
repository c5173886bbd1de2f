#include "distributed/master/many_steps.h"

#include <algorithm>
#include <utility>

#include "distributed/service.h"

namespace headrace::distributed {
namespace {

// What may wait to be sent when a further step begins: so that a part stays a
// message, and memory bounded, whatever one step may give.
constexpr size_t kMostBytes = size_t{16} << 20;
// For how long a call begins steps, at most.
constexpr int64_t kLongestRowUs = 1'000'000;

}  // namespace

bool ManySteps::Begin() {
  MutexLock lock(mutex_);
  over_ |= begun_ == count_;
  over_ |= begun_ > 0 && (bytes_ > kMostBytes || Clock::now() > until_);
  if (!over_) ++begun_;
  return !over_;
}

void ManySteps::End(tensorflow::RunStepResponse done) {
  {
    MutexLock lock(mutex_);
    over_ |= done.status_code() != 0 || begun_ == count_;
    bytes_ += done.ByteSizeLong();
    *ended_.add_done() = std::move(done);
    // The last one goes with the answer.
    if (is_sending_ || over_) return;
    is_sending_ = true;
  }
  Send();
}

void ManySteps::End(const Status& error) {
  tensorflow::RunStepResponse done;
  SayError(error, &done);
  End(std::move(done));
}

void ManySteps::Send() {
  RunStepsResponse part;
  {
    MutexLock lock(mutex_);
    part = std::exchange(ended_, RunStepsResponse());
    bytes_ = 0;
  }
  call_->Send(WriteMessage(part), [self = shared_from_this()](bool goes_on) {
    self->Sent(goes_on);
  });
}

void ManySteps::Sent(bool goes_on) {
  RunStepsResponse last;
  bool more;
  {
    MutexLock lock(mutex_);
    over_ |= !goes_on;
    more = goes_on && !finished_ && !ended_.done().empty();
    is_sending_ = more;
    if (!more && !finished_) return;
    if (finished_) last = std::move(ended_);
  }
  if (more) return Send();
  call_->Finish(AnswerOf(OkStatus(), WriteMessage(last)));
}

void ManySteps::Finish(const Status& s) {
  RunStepsResponse last;
  {
    MutexLock lock(mutex_);
    finished_ = over_ = true;
    if (s.ok()) {
      if (is_sending_) return;
      last = std::move(ended_);
    }
  }
  call_->Finish(AnswerOf(s, s.ok() ? WriteMessage(last) : Bytes()));
}

int ManySteps::GiveBack() {
  MutexLock lock(mutex_);
  over_ = true;
  return begun_;
}

void RunManySteps(const std::shared_ptr<ServerCall>& call,
                  ManyStepsCalls* calls, int64_t request, int count,
                  int64_t begin_within_us,
                  std::function<Status(ManySteps& steps)> run) {
  const auto made = calls->Begin(call, request, count, begin_within_us);
  if (!made.ok()) return call->Finish(AnswerOf(made.status()));
  const std::shared_ptr<ManySteps>& steps = *made;
  const auto token = std::make_shared<CancellationToken>();
  call->OnCancel([token] { token->Cancel(); });
  const Status begun =
      RunWhereItMayWait(*call, [calls, request, steps = steps, token, run] {
        const StopScope stop(token.get());
        const Status ran = Guarded("a method", [&] { return run(*steps); });
        calls->Remove(request);
        steps->Finish(ran);
      });
  if (begun.ok()) return;
  calls->Remove(request);
  steps->Finish(begun);
}

StatusOr<std::shared_ptr<ManySteps>> ManyStepsCalls::Begin(
    const std::shared_ptr<ServerCall>& call, int64_t request, int count,
    int64_t begin_within_us) {
  const std::chrono::microseconds within(
      std::clamp<int64_t>(begin_within_us, 0, kLongestRowUs));
  auto steps = std::make_shared<ManySteps>(call, count, Clock::now() + within);
  MutexLock lock(mutex_);
  if (calls_.emplace(request, steps).second) return steps;
  return Aborted("another call has the number ", request);
}

void ManyStepsCalls::Remove(int64_t request) {
  MutexLock lock(mutex_);
  calls_.erase(request);
}

Status ManyStepsCalls::GiveBack(const GiveBackStepsRequest& request,
                                GiveBackStepsResponse* response) {
  std::shared_ptr<ManySteps> steps;
  {
    MutexLock lock(mutex_);
    const auto it = calls_.find(request.request_id());
    if (it != calls_.end()) steps = it->second;
  }
  if (!steps) {
    return NotFound("no call has the number ", request.request_id(),
                    ", or it has ended");
  }
  response->set_begun(steps->GiveBack());
  return OkStatus();
}

}  // namespace headrace::distributed
