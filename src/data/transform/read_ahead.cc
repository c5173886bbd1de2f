#include "data/transform/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/thread_pool.h"

namespace headrace {
namespace {

// A buffer whose size is left to us starts with this and doubles whenever it
// runs empty, up to the other.
constexpr int64_t kFirstLimit = 2;
constexpr int64_t kLastLimit = 64;

}  // namespace

ReadAhead::ReadAhead(IteratorPtr input, int64_t size)
    : input_(std::move(input)),
      size_(size),
      limit_(size < 0 ? kFirstLimit : size),
      finished_(!input_) {}

void ReadAhead::Stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  thread_.join();
  stop_ = false;
}

void ReadAhead::Work(PullContext& c) {
  std::optional<ScopedThreadLimit> limit;
  if (c.options.op_threads > 0) limit.emplace(c.options.op_threads);
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      room_.wait(lock, [&] {
        return stop_ || static_cast<int64_t>(buffer_.size()) < limit_;
      });
      if (stop_) return;
    }
    std::lock_guard<std::mutex> pulling(input_mutex_);
    Pulled item;
    bool end = false;
    item.status = input_->Next(c, &item.element, &end);
    const bool cancelled = c.token->cancelled();
    std::lock_guard<std::mutex> lock(mutex_);
    if (end && item.status.ok()) {
      finished_ = true;
    } else {
      buffer_.push_back(std::move(item));
    }
    if (cancelled) finished_ = true;
    if (waiting_) filled_.notify_one();
    if (finished_) return;
  }
}

Status ReadAhead::Next(PullContext& c, Element* out, bool* end) {
  if (size_ == 0 && buffer_.empty()) {
    if (input_ && !finished_) {
      HR_RETURN_IF_ERROR(input_->Next(c, out, end));
      finished_ = *end;
    }
    *end = finished_;
    return OkStatus();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (!begun_ && !finished_ && size_ != 0) {
    begun_ = true;
    *c.has_threads = true;
    thread_ = std::thread([this, &c] { Work(c); });
  }
  if (buffer_.empty() && !finished_) {
    if (size_ < 0) limit_ = std::min(2 * limit_, kLastLimit);
    waiting_ = true;
    while (buffer_.empty() && !finished_) {
      filled_.wait_for(lock, std::chrono::milliseconds(100));
      HR_RETURN_IF_ERROR(c.CheckCancelled());
    }
    waiting_ = false;
  }
  if (buffer_.empty()) {
    *end = true;
    return c.CheckCancelled();
  }
  Status s = std::move(buffer_.front().status);
  *out = std::move(buffer_.front().element);
  buffer_.pop_front();
  lock.unlock();
  room_.notify_one();
  return s;
}

Status ReadAhead::Save(PullContext& c, StateWriter& w,
                       std::vector<Pulled>* ahead) {
  std::lock_guard<std::mutex> pulling(input_mutex_);
  std::lock_guard<std::mutex> lock(mutex_);
  ahead->assign(buffer_.begin(), buffer_.end());
  return input_ ? input_->Save(c, w) : OkStatus();
}

Status ReadAhead::Restore(PullContext& c, const StateReader& r,
                          std::vector<Pulled> ahead) {
  Stop();
  if (input_) HR_RETURN_IF_ERROR(input_->Restore(c, r));
  std::lock_guard<std::mutex> lock(mutex_);
  buffer_.assign(std::make_move_iterator(ahead.begin()),
                 std::make_move_iterator(ahead.end()));
  begun_ = false;
  finished_ = !input_;
  return OkStatus();
}

}  // namespace headrace
