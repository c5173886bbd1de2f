// Writes that go on while the program does, one at a time.
#pragma once

#include <functional>
#include <thread>

#include "base/status.h"

namespace headrace {

// Calls of one object may come from one thread at a time.
class AsyncWrites {
 public:
  AsyncWrites() = default;
  AsyncWrites(const AsyncWrites&) = delete;
  // Waits; an error that nobody asked for is lost.
  ~AsyncWrites();

  // Runs `write` on a thread of its own, behind the write before; at once where
  // the system gives no thread. Returns the error of the write before, and then
  // starts nothing.
  Status Start(std::function<Status()> write);
  // Returns when nothing is being written, with the error of the write.
  Status Wait();

 private:
  std::thread thread_;
  Status status_;  // of the last write, once its thread is joined
};

}  // namespace headrace
