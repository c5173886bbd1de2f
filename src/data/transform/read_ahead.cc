#include "data/transform/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/guard.h"
#include "base/thread_pool.h"
#include "base/threads.h"

namespace headrace {
namespace {

// A buffer whose size is left to us starts with this and doubles whenever it
// runs empty, up to the other.
constexpr int64_t kFirstLimit = 2;
constexpr int64_t kLastLimit = 64;

// Waking the thread costs about this many seconds: a reader that is away for
// less gains nothing.
constexpr double kWorthWaking = 20e-6;
// How many times away the mean looks back on: long ones between bursts count,
// being interrupted now and then does not.
constexpr int64_t kRemembered = 1024;
// Who waits looks this often whether to stop.
constexpr auto kStopsSeen = std::chrono::milliseconds(50);

}  // namespace

ReadAhead::ReadAhead(IteratorPtr input, int64_t size)
    : input_(std::move(input)),
      size_(size),
      limit_(size < 0 ? kFirstLimit : size),
      finished_(!input_) {}

void ReadAhead::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  room_.NotifyAll();
  thread_.join();
  MutexLock lock(mutex_);
  stop_ = false;
}

Pulled ReadAhead::Pull(PullContext& c) {
  // One pulls at a time, the thread or the reader: the lock is let go
  // meanwhile, so that the other may look, and this flag keeps it from pulling
  // as well.
  busy_ = true;
  Pulled item;
  bool end = false, cancelled = false;
  {
    MutexUnlock open(mutex_);
    item.status = Guarded("reading ahead",
                          [&] { return input_->Next(c, &item.element, &end); });
    // An input that is cancelled may say that it has ended: nothing may take
    // that for its end.
    cancelled = c.token->cancelled();
  }
  busy_ = false;
  // An error does not end an input: what is behind it may be asked for.
  if ((end && item.status.ok()) || cancelled) finished_ = true;
  return item;
}

Status ReadAhead::Keep(Pulled item) {
  try {
    buffer_.push_back(std::move(item));
    return OkStatus();
  } catch (...) {
    return CaughtStatus("reading ahead");
  }
}

void ReadAhead::Work(PullContext& c) {
  const StopScope scope(c.token);
  std::optional<ScopedThreadLimit> limit;
  // The limit belongs to the thread that runs ops, so the reader's own does not
  // reach this one.
  if (c.options.op_threads > 0) limit.emplace(c.options.op_threads);
  MutexLock lock(mutex_);
  while (true) {
    while (
        !stop_ && !finished_ &&
        (!wanted_ || busy_ || static_cast<int64_t>(buffer_.size()) >= limit_)) {
      room_.Wait(mutex_);
    }
    if (stop_ || finished_) return;
    Pulled item = Pull(c);
    if (!finished_ || !item.status.ok()) {
      Status kept = Keep(std::move(item));
      if (!kept.ok()) {  // said before anybody else pulls what is behind it
        broken_ = std::move(kept);
        finished_ = true;
      }
    }
    // A notification is a call into the system: none where nobody waits.
    if (waiting_) filled_.NotifyOne();
  }
}

void ReadAhead::NoteArrival() {
  // The first pull: the reader has not been away yet.
  if (left_ == Clock::time_point()) return;
  const double away =
      std::chrono::duration<double>(Clock::now() - left_).count();
  times_away_ = std::min(times_away_ + 1, kRemembered);
  // A mean that forgets: after kRemembered times each new one counts a
  // thousandth.
  away_ += (away - away_) / static_cast<double>(times_away_);
}

void ReadAhead::NoteDeparture(PullContext& c) {
  const bool first = left_ == Clock::time_point();
  // After the first pull nothing is known yet: reading ahead is the better
  // guess.
  wanted_ = first || away_ >= kWorthWaking;
  left_ = Clock::now();
  if (!wanted_ || finished_) return;
  if (thread_.joinable()) {
    room_.NotifyOne();
  } else if (!alone_) {
    Begin(c);
  }
}

void ReadAhead::Begin(PullContext& c) {
  *c.has_threads = true;
  StatusOr<std::thread> thread = StartThread([this, &c] {
    Status s = Guarded("reading ahead", [&] {
      Work(c);
      return OkStatus();
    });
    if (s.ok()) return;
    MutexLock lock(mutex_);  // an element is lost: there is no going on
    broken_ = std::move(s);
    finished_ = true;
    filled_.NotifyOne();
  });
  // No thread to be had is no error: the reader pulls each element itself, as
  // without a prefetch.
  alone_ = !thread.ok();
  if (!alone_) thread_ = *std::move(thread);
}

Status ReadAhead::NextAtHand(PullContext& c, Element* out, bool* end) {
  if (buffer_.empty() && size_ < 0 && wanted_ && !finished_) {
    // The reader came and found nothing, though the thread was at work.
    limit_ = std::min(2 * limit_, kLastLimit);
  }
  waiting_ = true;
  while (buffer_.empty() && !finished_ && busy_) {
    filled_.WaitFor(mutex_, kStopsSeen);
    Status stop = CheckStop();
    if (!stop.ok()) {
      waiting_ = false;
      return stop;
    }
  }
  waiting_ = false;
  Pulled item;
  if (!buffer_.empty()) {
    item = std::move(buffer_.front());
    buffer_.pop_front();
  } else if (!finished_) {
    // The reader itself: waking the thread and waiting for it would take
    // longer.
    item = Pull(c);
    *end = finished_ && item.status.ok();
    if (*end) return CheckStop();
  } else {
    HR_RETURN_IF_ERROR(std::exchange(broken_, OkStatus()));
    *end = true;
    return CheckStop();
  }
  *out = std::move(item.element);
  return std::move(item.status);
}

Status ReadAhead::Next(PullContext& c, Element* out, bool* end) {
  MutexLock lock(mutex_);
  // Size 0 is no prefetch at all, except for what a restored state brought
  // along.
  if (size_ == 0 && buffer_.empty()) {
    if (input_ && !finished_) {
      HR_RETURN_IF_ERROR(input_->Next(c, out, end));
      finished_ = *end;
    }
    *end = finished_;
    return OkStatus();
  }
  NoteArrival();
  Status s = NextAtHand(c, out, end);
  if (size_ != 0) NoteDeparture(c);
  return s;
}

void ReadAhead::AwaitIdle() {
  waiting_ = true;
  while (busy_) filled_.WaitFor(mutex_, kStopsSeen);
  waiting_ = false;
}

Status ReadAhead::Save(PullContext& c, StateWriter& w,
                       std::vector<Pulled>* ahead) {
  MutexLock lock(mutex_);
  AwaitIdle();
  ahead->assign(buffer_.begin(), buffer_.end());
  return input_ ? input_->Save(c, w) : OkStatus();
}

Status ReadAhead::Restore(PullContext& c, const StateReader& r,
                          std::vector<Pulled> ahead) {
  Stop();
  if (input_) HR_RETURN_IF_ERROR(input_->Restore(c, r));
  MutexLock lock(mutex_);
  buffer_.assign(std::make_move_iterator(ahead.begin()),
                 std::make_move_iterator(ahead.end()));
  // How long the reader was away before says nothing about the walk that begins
  // here.
  left_ = {};
  times_away_ = 0;
  away_ = 0;
  wanted_ = false;
  broken_ = OkStatus();
  finished_ = !input_;
  return OkStatus();
}

}  // namespace headrace
