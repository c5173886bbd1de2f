// A thread that takes elements of an iterator ahead of who reads them. Where
// the system gives no thread, the reader takes them all itself.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "data/state.h"

namespace headrace {

// Used by one thread at a time, besides its own. The thread works where the
// reader spends time between its calls; a reader that comes back at once takes
// the elements itself, which spares two switches of threads an element.
class ReadAhead {
 public:
  // Up to `size` elements ahead; 0: none, without a thread; negative: a buffer
  // that grows whenever it runs empty. `input` may be null: it has none.
  ReadAhead(IteratorPtr input, int64_t size);
  ~ReadAhead() { Stop(); }

  // As DatasetIterator::Next. `c` must outlive the reader.
  Status Next(PullContext& c, Element* out, bool* end);
  // Saves the input, and gives what was taken ahead of who reads.
  Status Save(PullContext& c, StateWriter& w, std::vector<Pulled>* ahead);
  // The input at its saved place, and what is read before it.
  Status Restore(PullContext& c, const StateReader& r,
                 std::vector<Pulled> ahead);

 private:
  using Clock = std::chrono::steady_clock;

  void Stop();
  // Starts the thread, if there is one to be had.
  void Begin(PullContext& c) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work(PullContext& c);
  // One element of the input. The lock is let go meanwhile.
  Pulled Pull(PullContext& c) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts it into the buffer; an error where there is no memory for it.
  Status Keep(Pulled item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until the thread is between two elements.
  void AwaitIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status NextAtHand(PullContext& c, Element* out, bool* end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long the reader was away.
  void NoteArrival();
  // Has the thread go on, if that is worth it.
  void NoteDeparture(PullContext& c) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const IteratorPtr input_;
  const int64_t size_;
  std::thread thread_;           // begun when the reader first goes away
  Clock::time_point left_ = {};  // when it last did
  bool alone_ = false;           // there is no thread to be had
  int64_t times_away_ = 0;
  double away_ = 0;  // seconds, a mean that follows slowly
  Mutex mutex_;
  CondVar room_, filled_;
  std::deque<Pulled> buffer_ ABSL_GUARDED_BY(mutex_);
  int64_t limit_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  Status broken_
      ABSL_GUARDED_BY(mutex_);  // what ended the thread before its time
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;    // somebody pulls
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;  // the thread may pull
};

}  // namespace headrace
