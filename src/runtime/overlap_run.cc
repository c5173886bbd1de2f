// How a plan goes on while steps of it wait.
#include <map>
#include <memory>
#include <queue>

#include "base/cancellation.h"
#include "op/waiting.h"
#include "runtime/waiting_steps.h"
#include "runtime/workspace.h"

namespace headrace {

// One run of an overlap: the thread that it is on runs what does not wait.
class Executable::OverlapRun {
 public:
  OverlapRun(Executable& e, Workspace& f, bool timed)
      : e_(e), f_(f), timed_(timed), error_(e.num_steps()) {
    waiter_of_.assign(e_.num_steps(), -1);
    for (size_t w = 0; w < e_.overlap_.waiters.size(); ++w) {
      waiter_of_[e_.overlap_.waiters[w].call] = static_cast<int>(w);
    }
    for (const Shared& shared : e_.shared_) readers_.push_back(shared.readers);
    for (const Overlap::Block& b : e_.overlap_.blocks) {
      if (b.needs == 0) ready_.push(static_cast<int>(left_.size()));
      left_.push_back(b.needs);
    }
  }

  Status Run() {
    while (true) {
      while (!failed_ && !ready_.empty()) {
        const int block = ready_.top();
        ready_.pop();
        RunBlock(e_.overlap_.blocks[block].calls);
      }
      if (!waiting_.any()) break;
      const WaitingSteps::Ended ended = waiting_.Next();
      if (ended.again) {
        if (!Try(ended.key)) Await(ended.key);
      } else {
        End(ended.key, ended.status);
      }
    }
    MutexLock lock(error_.mutex);
    if (!error_.status.ok()) return std::move(error_.status);
    return waiting_.stop();
  }

 private:
  void RunBlock(absl::Span<const int> steps) {
    for (const int i : steps) {
      const int w = waiter_of_[i];
      if (w < 0) {
        Status s = CheckStopOften();
        if (s.ok()) s = Timed(i);
        if (!s.ok()) return Fail(i, std::move(s));
        LetGo(i);
        continue;
      }
      if (e_.overlap_.waiters[w].tried) {
        if (Try(i)) {
          if (failed_) return;
          continue;
        }
        if (Await(i)) continue;
      }
      const bool busy = e_.overlap_.waiters[w].busy;
      // With nothing else to do this thread waits itself.
      const bool alone =
          &i == &steps.back() && ready_.empty() && !waiting_.any();
      if (alone || (busy && InterOpScope::Threads() == 1)) {
        End(i, Timed(i));
        if (failed_) return;
      } else {
        waiting_.Start(i, busy, [this, i] { return Timed(i); });
      }
    }
  }

  // Runs step i, which ends unless it would wait; then false.
  bool Try(int i) {
    Status s;
    {
      const WaitRefusal refused(&places_[i]);
      s = Timed(i);
    }
    if (IsWouldWait(s)) return false;
    places_.erase(i);
    End(i, std::move(s));
    return true;
  }

  // Step i, which would wait, is tried again when its place or its kernel says
  // so; false where nobody can tell.
  bool Await(int i) {
    if (const auto place = places_[i]) {
      waiting_.Await(i, [&](std::function<void()> ready) {
        place->Await(std::move(ready));
      });
      return true;
    }
    auto* kernel = dynamic_cast<AwaitingKernel*>(e_.steps_[i].kernel);
    if (kernel == nullptr) return false;
    waiting_.Await(i, [&](std::function<void()> ready) {
      kernel->Await(std::move(ready));
    });
    return true;
  }

  // Of step i, on whichever thread: on error with its name.
  Status Timed(int i) {
    const Step& step = e_.steps_[i];
    Status s = timed_ ? e_.RunTimed(f_, i) : e_.RunStep(f_, i);
    if (!s.ok()) return IsWouldWait(s) ? s : AtCall(s, step.name);
    for (ValueId v : step.release) f_.slots[v] = Tensor();
    return OkStatus();
  }

  // Step i, which waited, has ended.
  void End(int i, Status s) {
    if (!s.ok()) {
      // What this run ended is no reason for its end.
      if (!waiting_.EndedByCancel(s)) Fail(i, std::move(s));
      failed_ = true;
      return;
    }
    LetGo(i);
    for (const int block : e_.overlap_.waiters[waiter_of_[i]].unlocks) {
      if (--left_[block] == 0) ready_.push(block);
    }
  }

  // Step i has read what others read, too.
  void LetGo(int i) {
    for (const int shared : e_.shared_by_step_[i - e_.overlap_.begin]) {
      if (--readers_[shared] == 0) {
        f_.slots[e_.shared_[shared].value] = Tensor();
      }
    }
  }

  // Of steps that failed before all had ended, the first in order counts.
  void Fail(int i, Status s) {
    error_.Set(i, std::move(s));
    failed_ = true;
    waiting_.Cancel();
  }

  Executable& e_;
  Workspace& f_;
  const bool timed_;
  FirstError error_;
  bool failed_ = false;
  std::vector<int> waiter_of_;  // per step, or -1
  std::vector<int> left_;       // per block: what it still needs
  std::vector<int> readers_;    // per shared value: those still to run
  std::priority_queue<int, std::vector<int>, std::greater<>> ready_;
  // Of steps that wait without a thread: given up with the run.
  std::map<int, std::shared_ptr<WaitingPlace>> places_;
  WaitingSteps waiting_;  // the last to be made: its steps use the others
};

Status Executable::RunOverlap(Workspace& f, bool timed) {
  return OverlapRun(*this, f, timed).Run();
}

}  // namespace headrace
