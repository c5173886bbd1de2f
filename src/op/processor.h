// Which of the host's logical processors (tf.config's) a thread works for. They
// are all the same machine, so only ops ask whose calls stand for a device
// each: collectives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "op/kernel.h"
#include "op/waiting.h"

namespace headrace {

// Of an op with kMayWait whose calls, each for a device, wait for each other:
// none waits for the effects of others, though it is stateful, and bodies of
// functions overlap them too. Its kernel asks for ThisProcessor().
inline constexpr OpTrait kMeetsOthers = static_cast<OpTrait>(21);
static_assert(static_cast<int>(OpTrait::kTakesLists) < 21);

// The number of the one that a thread works for: 0 unless a scope says so, or
// its program, where a block of tf.device begins and ends.
class ProcessorOfThread {
  friend int ThisProcessor();
  friend void SetThisProcessor(int index);
  static constinit inline thread_local int index_
      [[gnu::tls_model("initial-exec")]] = 0;
};
inline int ThisProcessor() { return ProcessorOfThread::index_; }
inline void SetThisProcessor(int index) { ProcessorOfThread::index_ = index; }

// This thread works for another one while this lives.
class ProcessorScope {
 public:
  explicit ProcessorScope(int index) : outer_(ThisProcessor()) {
    SetThisProcessor(index);
  }
  ~ProcessorScope() { SetThisProcessor(outer_); }
  ProcessorScope(const ProcessorScope&) = delete;
  ProcessorScope& operator=(const ProcessorScope&) = delete;

 private:
  const int outer_;
};

// The number in "/job:localhost/replica:0/task:0/device:CPU:1", "/cpu:1" and
// the like; none where a device's name says no number.
std::optional<int> ProcessorNamed(StringView device);
// "/job:localhost/replica:0/task:0/device:CPU:1".
std::string ProcessorName(int index);
// Those of so many.
std::vector<std::string> ProcessorNames(int count);

// The kernel, whose runs work for that processor.
std::unique_ptr<Kernel> OnProcessor(std::unique_ptr<Kernel> kernel, int index);

}  // namespace headrace
