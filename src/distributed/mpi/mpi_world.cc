#include "distributed/mpi/mpi_world.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/cancellation.h"
#include "base/threads.h"
#include "ops/queue/await_change.h"

namespace headrace::distributed {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The tag of what processes say when they leave; mpi_engine.cc has the others.
constexpr int kLeaveTag = 1;
// For all processes of a job to come to their ends, and for MPI to end: those
// that share a processor may be seconds behind.
constexpr milliseconds kEnds{10'000};

std::string Seconds(milliseconds time) {
  return absl::StrFormat("%.1f s", static_cast<double>(time.count()) / 1e3);
}

// Where MPI is begun and ended: both wait for the other processes without a
// deadline, so a thread of its own does it, and the same one does both, as the
// standard asks.
class Process {
 public:
  Status Begin(const std::shared_ptr<MpiLibrary>& library,
               milliseconds patience) {
    MutexLock lock(mutex_);
    if (library->Ended()) {
      return FailedPrecondition(
          "the program has ended MPI (MPI_Finalize), which cannot begin again");
    }
    if (state_ == State::kNone && library->Begun()) {
      HR_ASSIGN_OR_RETURN(const auto level, library->ThreadsOf());
      if (level == MpiLibrary::kMultiple) return OkStatus();
      return FailedPrecondition(
          "the program has begun MPI with thread level ", level,
          "; collectives by MPI need MPI_THREAD_MULTIPLE (",
          MpiLibrary::kMultiple, ") beside other users of it");
    }
    if (state_ == State::kNone) {
      HR_RETURN_IF_ERROR(CheckLaunched());
      library_ = library;
      HR_ASSIGN_OR_RETURN(std::thread thread, StartThread([this, library] {
                            BeginAndEnd(*library);
                          }));
      thread.detach();
      state_ = State::kBegins;
    }
    const Clock::time_point until = Clock::now() + patience;
    while (state_ == State::kBegins) {
      if (Clock::now() > until) {
        return DeadlineExceeded("MPI_Init_thread of ", library->Version(),
                                " has not come back for ", Seconds(patience),
                                ": not all processes of the job begin MPI");
      }
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    }
    return state_ == State::kRuns ? OkStatus() : failure_;
  }

  bool began() {
    MutexLock lock(mutex_);
    return state_ == State::kRuns;
  }

  // By whomever.
  bool Ended() {
    MutexLock lock(mutex_);
    return library_->Ended();
  }

  // False: it did not end in time.
  bool End() {
    MutexLock lock(mutex_);
    state_ = State::kEnds;
    changed_.NotifyAll();
    const Clock::time_point until = Clock::now() + kEnds;
    while (state_ == State::kEnds && Clock::now() < until) {
      changed_.WaitFor(mutex_, milliseconds(20));
    }
    return state_ == State::kEnded;
  }

 private:
  enum class State { kNone, kBegins, kFailed, kRuns, kEnds, kEnded };

  static Status CheckLaunched() {
    std::string looked_for;
    if (!MpiLauncher(&looked_for).empty()) return OkStatus();
    return FailedPrecondition(
        "this process was not started by an MPI launcher (mpirun, mpiexec, "
        "srun --mpi): none of ",
        looked_for, " is in its environment");
  }

  void BeginAndEnd(MpiLibrary& library) {
    MpiLibrary::Threads level = MpiLibrary::kSingle;
    Status s = library.Begin(&level);
    if (s.ok() && level < MpiLibrary::kSerialized) {
      s = FailedPrecondition(library.Version(), " gives thread level ", level,
                             "; collectives need MPI_THREAD_SERIALIZED (",
                             MpiLibrary::kSerialized, ")");
    }
    {
      MutexLock lock(mutex_);
      failure_ = s;
      state_ = s.ok() ? State::kRuns : State::kFailed;
      changed_.NotifyAll();
      if (!s.ok()) return;
      while (state_ != State::kEnds) changed_.Wait(mutex_);
    }
    s = library.End();
    MutexLock lock(mutex_);
    state_ = s.ok() ? State::kEnded : State::kFailed;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<MpiLibrary> library_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kNone;
  Status failure_ ABSL_GUARDED_BY(mutex_);
};

// Of the process, for good.
struct OfThisProcess {
  Mutex mutex;
  const pid_t number = getpid();
  std::shared_ptr<MpiLibrary> library ABSL_GUARDED_BY(mutex);
  std::shared_ptr<MpiWorld> world ABSL_GUARDED_BY(mutex);
  Process process;
};
OfThisProcess& TheProcess() {
  static OfThisProcess* const process = new OfThisProcess;
  return *process;
}

// Where some process does not leave, MPI is not ended, as that would wait for
// it: the launcher then says that the job ended without.
void EndMpi() {
  OfThisProcess& its = TheProcess();
  if (its.number != getpid()) return;  // a forked one has no part in the job
  std::shared_ptr<MpiWorld> world;
  {
    // Where another thread still waits for the world, there is none to end.
    if (!its.mutex.try_lock()) return;
    world = its.world;
    its.mutex.unlock();
  }
  if (!world || !its.process.began() || its.process.Ended()) return;
  const Status left = world->Leave(kEnds);
  world->Close();
  if (left.ok() && its.process.End()) return;
  std::fprintf(stderr, "headrace: MPI is not ended in order: %s\n",
               left.ok() ? "MPI_Finalize has not come back"
                         : std::string(left.message()).c_str());
}

}  // namespace

Status MpiPause::operator()() {
  // The time of a small message between processes of a machine, some 50 us;
  // then sleeps, and longer ones behind 50 ms. Who only yields the processor
  // is given it again milliseconds later where others have work.
  constexpr int64_t kSpins = 50, kShort = 500;
  constexpr std::chrono::microseconds kShortSleep{50}, kLongSleep{500};
  // As often as AwaitChange: 20 ms.
  constexpr int64_t kCheck = 40;
  const int64_t turn = turns_++;
  if (turn < kSpins) return OkStatus();
  std::this_thread::sleep_for(turn < kShort ? kShortSleep : kLongSleep);
  return turn % kCheck == 0 ? CheckStop() : OkStatus();
}

MpiWorld::Transfer::~Transfer() {
  if (!done_) world_->Drop(*this);
}

StatusOr<std::shared_ptr<MpiWorld>> MpiWorld::OfProcess(milliseconds patience) {
  OfThisProcess& its = TheProcess();
  MutexLock lock(its.mutex);
  if (its.world) return its.world;
  if (!its.library) {
    HR_ASSIGN_OR_RETURN(its.library, LoadMpi(MpiPlaces()));
  }
  HR_RETURN_IF_ERROR(its.process.Begin(its.library, patience));
  HR_ASSIGN_OR_RETURN(its.world, Make(its.library, patience));
  std::atexit(EndMpi);
  return its.world;
}

StatusOr<std::shared_ptr<MpiWorld>> MpiWorld::Make(
    std::shared_ptr<MpiLibrary> library, milliseconds patience) {
  const std::shared_ptr<MpiWorld> made(new MpiWorld(std::move(library)));
  HR_ASSIGN_OR_RETURN(const auto copied, made->library_->CopyWorld());
  const Clock::time_point until = Clock::now() + patience;
  MpiPause pause;
  while (true) {
    HR_ASSIGN_OR_RETURN(const bool done, copied(&made->world_));
    if (done) break;
    if (Clock::now() > until) {
      return DeadlineExceeded(
          "not all processes of MPI's world have begun collectives by MPI in ",
          Seconds(patience),
          ": each has to be a task of the cluster with the same setting");
    }
    HR_RETURN_IF_ERROR(pause());
  }
  HR_RETURN_IF_ERROR(made->library_->ReturnErrors(made->world_));
  HR_RETURN_IF_ERROR(
      made->library_->AtEnd([weak = std::weak_ptr<MpiWorld>(made)] {
        if (const auto world = weak.lock()) world->Close();
      }));
  HR_RETURN_IF_ERROR(
      made->library_->RankAndSize(made->world_, &made->rank_, &made->size_));
  return made;
}

StatusOr<MpiWorld::TransferPtr> MpiWorld::Send(int to, int tag, Bytes bytes) {
  if (bytes.pieces().size() > 1) bytes = Bytes(bytes.Flat());
  if (bytes.size() > INT32_MAX) {
    return InvalidArgument("a message of ", bytes.size(), " bytes by MPI");
  }
  TransferPtr sent(new Transfer(shared_from_this(), std::move(bytes)));
  const auto& pieces = sent->bytes_.pieces();
  MutexLock lock(mutex_);
  sent->done_ = true;  // where nothing begins
  HR_RETURN_IF_ERROR(CheckOpen());
  const auto request =
      library_->Send(world_, to, tag, pieces.empty() ? "" : pieces[0].data,
                     static_cast<int>(sent->bytes_.size()));
  HR_RETURN_IF_ERROR(request.status());
  sent->request_ = *request;
  sent->done_ = false;
  return sent;
}

StatusOr<MpiWorld::TransferPtr> MpiWorld::Receive(int from, int tag,
                                                  int64_t most, int* source) {
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(CheckOpen());
  TestLeft();
  MpiLibrary::Found found;
  HR_ASSIGN_OR_RETURN(const bool there,
                      library_->Probe(world_, from, tag, &found));
  if (!there) return TransferPtr();
  if (found.bytes < 0 || found.bytes > most) {
    return InvalidArgument("rank ", found.source, " of MPI's world sent ",
                           found.bytes, " bytes, of ", most, " at most");
  }
  *source = found.source;
  const auto size = static_cast<size_t>(found.bytes);
  // Of no value yet: MPI writes all of it.
  const std::shared_ptr<char[]> memory(new char[std::max<size_t>(size, 1)]);
  Bytes bytes;
  bytes.Append({memory, memory.get(), size});
  TransferPtr received(new Transfer(shared_from_this(), std::move(bytes)));
  const auto request = library_->Receive(
      world_, found.source, tag, memory.get(), static_cast<int>(found.bytes));
  received->done_ = !request.ok();
  HR_RETURN_IF_ERROR(request.status());
  received->request_ = *request;
  return received;
}

StatusOr<bool> MpiWorld::Done(Transfer& transfer) {
  if (transfer.done_) return true;
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(CheckOpen());
  const auto done = library_->Test(&transfer.request_);
  transfer.done_ = !done.ok() || *done;
  return done;
}

void MpiWorld::Drop(Transfer& transfer) {
  MutexLock lock(mutex_);
  left_.push_back({transfer.request_, std::move(transfer.bytes_)});
  TestLeft();
}

Status MpiWorld::CheckOpen() {
  return closed_ ? Unavailable("MPI has ended in this process") : OkStatus();
}

void MpiWorld::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

void MpiWorld::TestLeft() {
  if (closed_) return;
  left_.remove_if([this](Left& left) {
    const auto done = library_->Test(&left.request);
    return !done.ok() || *done;
  });
}

Status MpiWorld::Leave(milliseconds patience) {
  std::vector<TransferPtr> sent;
  std::vector<bool> here(size_, true);
  here[rank_] = false;
  for (int q = 0; q < size_; ++q) {
    if (q == rank_) continue;
    HR_ASSIGN_OR_RETURN(sent.emplace_back(), Send(q, kLeaveTag, {}));
  }
  const Clock::time_point until = Clock::now() + patience;
  MpiPause pause;
  while (true) {
    int source = 0;
    HR_ASSIGN_OR_RETURN(TransferPtr left,
                        Receive(MpiLibrary::kAnySource, kLeaveTag, 0, &source));
    if (left) here[source] = false;
    bool over = std::find(here.begin(), here.end(), true) == here.end();
    for (const TransferPtr& t : sent) {
      HR_ASSIGN_OR_RETURN(const bool done, Done(*t));
      over = over && done;
    }
    if (over) return OkStatus();
    if (Clock::now() > until) {
      std::string who;
      for (int q = 0; q < size_; ++q) {
        if (here[q]) absl::StrAppend(&who, who.empty() ? "" : ", ", q);
      }
      return DeadlineExceeded("rank ", rank_, " of MPI's world waited ",
                              Seconds(patience), " for ranks ", who, " to end");
    }
    // The process ends: no stop of the program is asked for here.
    pause().IgnoreError();
  }
}

}  // namespace headrace::distributed
