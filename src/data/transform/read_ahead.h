// A thread that takes elements of an iterator ahead of who reads them.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/state.h"

namespace headrace {

// Used by one thread at a time, besides its own.
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
  void Stop();
  void Work(PullContext& c);

  const IteratorPtr input_;
  const int64_t size_;
  std::thread thread_;  // begun by the first Next
  // Held by the thread while it pulls and puts down what came: who holds it
  // sees a place between two elements. Before mutex_.
  std::mutex input_mutex_;
  std::mutex mutex_;  // guards all below
  std::condition_variable room_, filled_;
  std::deque<Pulled> buffer_;
  int64_t limit_;
  bool stop_ = false, finished_ = false, waiting_ = false, begun_ = false;
};

}  // namespace headrace
