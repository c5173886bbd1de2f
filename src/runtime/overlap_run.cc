// How a plan goes on while steps of it wait.
#include <time.h>

#include <map>
#include <memory>
#include <queue>

#include "base/cancellation.h"
#include "base/flush_denormals.h"
#include "base/guard.h"
#include "base/stack_room.h"
#include "base/timeline.h"
#include "op/waiting.h"
#include "runtime/waiting_steps.h"
#include "runtime/workspace.h"

namespace headrace {

// One run of an overlap: the thread that it is on runs what does not wait.
class Executable::OverlapRun {
 public:
  // `holds_thread`: it goes on by Run, on one thread. Else by GoOn, and its
  // steps listen to nothing else than its end.
  OverlapRun(Executable& e, Workspace& f, bool timed, bool holds_thread)
      : e_(e),
        f_(f),
        timed_(timed),
        holds_thread_(holds_thread),
        error_(e.num_steps()),
        waiting_(holds_thread ? StopSources::OfThisThread() : StopSources()) {
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
    while (RunReady()) TakeNote(waiting_.Next());
    return Result();
  }

  // Goes on until all is over, which is true, or until it would wait: then
  // `wake` is called once, on any thread, when this is to be called again.
  bool GoOn(const std::function<void()>& wake) {
    while (RunReady()) {
      auto ended = waiting_.Poll(wake);
      if (!ended) return false;
      TakeNote(*std::move(ended));
    }
    places_.clear();
    return true;
  }
  // Behind that.
  Status Result() {
    MutexLock lock(error_.mutex);
    if (!error_.status.ok()) return std::move(error_.status);
    return waiting_.stop();
  }
  void Poke() const { waiting_.Poke(); }
  // Behind an exception: ends what is under way, and waits for it.
  void EndAll() {
    waiting_.Cancel();
    while (waiting_.any()) waiting_.Next();
    places_.clear();
  }

 private:
  // All that need not wait; whether anything is left that has begun.
  bool RunReady() {
    while (!failed_ && !ready_.empty()) {
      const int block = ready_.top();
      ready_.pop();
      RunBlock(e_.overlap_.blocks[block].calls);
    }
    return waiting_.any();
  }

  void TakeNote(WaitingSteps::Ended ended) {
    if (ended.again) {
      if (!Try(ended.key)) Await(ended.key);
    } else {
      End(ended.key, std::move(ended.status));
    }
  }

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
      const bool alone = holds_thread_ && &i == &steps.back() &&
                         ready_.empty() && !waiting_.any();
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
  const bool holds_thread_;
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
  return OverlapRun(*this, f, timed, /*holds_thread=*/true).Run();
}

namespace {

// Of the thread, not of the clock: a thread that has to wait for a processor
// does no long work.
double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}
// A part that takes as long keeps the transport's thread from others; waking
// another one takes some 20 us.
constexpr double kLongPart = 1e-3;
// So many tell of the plan; the first of them may be those of new memory.
constexpr int kLongParts = 3;

}  // namespace

class Executable::Pausing : public PausingRun,
                            public std::enable_shared_from_this<Pausing> {
 public:
  Pausing(std::shared_ptr<Executable> e, std::unique_ptr<Workspace> f,
          std::shared_ptr<RunHost> host)
      : e_(std::move(e)),
        f_(std::move(f)),
        host_(std::move(host)),
        overlap_(*e_, *f_, timeline::On(), /*holds_thread=*/false) {}

  void Start(std::vector<Tensor> feeds, Ended ended) override {
    ended_ = std::move(ended);
    Part([&] {
      HR_RETURN_IF_ERROR(CheckStackRoom("functions that call each other"));
      HR_RETURN_IF_ERROR(e_->SetFeeds(*f_, absl::MakeSpan(feeds)));
      return e_->RunGroups(*f_, 0, e_->overlap_.begin, timeline::On());
    });
  }
  void Poke() override { overlap_.Poke(); }

 private:
  // A part of the run: `first`, and then the overlap and what is behind it.
  void Part(absl::FunctionRef<Status()> first) {
    bool over = true;
    Status s;
    std::vector<Tensor> fetches;
    host_->Around([&] {
      const double began = ProcessorSeconds();
      const FlushDenormals flushed;
      s = Guarded("a run", [&] {
        HR_RETURN_IF_ERROR(first());
        over = overlap_.GoOn([self = shared_from_this()] {
          self->host_->GoOn([self] { self->Part(OkStatus); });
        });
        return over ? End(&fetches) : OkStatus();
      });
      if (ProcessorSeconds() - began > kLongPart) ++e_->long_parts_;
    });
    if (s.ok() && !over) return;  // others may have gone on with it by now
    if (!s.ok()) {
      overlap_.EndAll();
      e_->Drop(*f_, &fetches);
    }
    e_->Release(std::move(f_));
    const std::shared_ptr<Pausing> self = shared_from_this();
    std::exchange(ended_, nullptr)(std::move(s), std::move(fetches));
  }

  Status End(std::vector<Tensor>* fetches) {
    Status s = overlap_.Result();
    if (s.ok()) {
      s = e_->RunGroups(*f_, e_->overlap_.end, e_->num_steps(), timeline::On());
    }
    for (RunWeights& w : f_->weights) w.Clear();
    if (s.ok()) e_->HandOut(*f_, fetches);
    return s;
  }

  const std::shared_ptr<Executable> e_;
  std::unique_ptr<Workspace> f_;
  const std::shared_ptr<RunHost> host_;
  OverlapRun overlap_;
  Ended ended_;
};

bool Executable::may_pause() const {
  return may_pause_ && !by_shape_ &&
         long_parts_.load(std::memory_order_relaxed) < kLongParts;
}

StatusOr<std::shared_ptr<PausingRun>> Executable::MakePausing(
    std::shared_ptr<Executable> e, const RunServices& services,
    std::shared_ptr<RunHost> host) {
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Workspace> f, e->Acquire());
  f->services = services;
  return std::make_shared<Pausing>(std::move(e), std::move(f), std::move(host));
}

}  // namespace headrace
