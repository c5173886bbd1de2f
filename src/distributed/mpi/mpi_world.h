// The processes that an MPI launcher started together, as messages reach them.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "distributed/mpi/mpi_library.h"
#include "distributed/wire/bytes.h"

namespace headrace::distributed {

// Thread-safe: one call of MPI at a time. Nothing waits but Make and Leave,
// which have a deadline; messages of one tag between two ranks keep their
// order.
class MpiWorld : public std::enable_shared_from_this<MpiWorld> {
 public:
  // A message under way. Where nobody waits for it any more its memory stays
  // until MPI is done with it.
  class Transfer {
   public:
    ~Transfer();
    Transfer(const Transfer&) = delete;
    // Of a receipt, once it is done.
    const Bytes& bytes() const { return bytes_; }

   private:
    friend class MpiWorld;
    Transfer(std::shared_ptr<MpiWorld> world, Bytes bytes)
        : world_(std::move(world)), bytes_(std::move(bytes)) {}

    const std::shared_ptr<MpiWorld> world_;
    Bytes bytes_;
    MpiLibrary::Handle request_ = 0;
    bool done_ = false;
  };
  using TransferPtr = std::unique_ptr<Transfer>;

  // The process's own. It loads a library, begins MPI where the program has
  // not, and ends what it began when the process does, after all have left.
  // FailedPrecondition where there is no library or no launcher;
  // DeadlineExceeded where not all processes of the job do the same in time.
  static StatusOr<std::shared_ptr<MpiWorld>> OfProcess(
      std::chrono::milliseconds patience);
  // A copy of the world of a library by which MPI was begun.
  static StatusOr<std::shared_ptr<MpiWorld>> Make(
      std::shared_ptr<MpiLibrary> library, std::chrono::milliseconds patience);

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& version() const { return version_; }

  // Messages are one task's alone: false where another one has taken them.
  bool Claim() { return !claimed_.exchange(true); }
  void Return() { claimed_ = false; }

  StatusOr<TransferPtr> Send(int to, int tag, Bytes bytes);
  // Begins to receive the next message of that tag; null where none is there.
  // InvalidArgument for one of more than `most` bytes. `*source`: its rank.
  StatusOr<TransferPtr> Receive(int from, int tag, int64_t most, int* source);
  StatusOr<bool> Done(Transfer& transfer);

  // Says that this process leaves, and waits for all others to say so.
  Status Leave(std::chrono::milliseconds patience);
  // MPI ends: nothing is sent or received any more.
  void Close();

 private:
  struct Left {  // what nobody waits for any more
    MpiLibrary::Handle request;
    Bytes bytes;
  };

  explicit MpiWorld(std::shared_ptr<MpiLibrary> library)
      : library_(std::move(library)), version_(library_->Version()) {}
  void Drop(Transfer& transfer);
  Status CheckOpen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TestLeft() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<MpiLibrary> library_;
  const std::string version_;
  MpiLibrary::Handle world_ = 0;
  int rank_ = 0, size_ = 0;
  std::atomic<bool> claimed_ = false;
  Mutex mutex_;  // of all calls of MPI
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Left> left_ ABSL_GUARDED_BY(mutex_);
};

// Between looks at what is waited for: at first there is none, later a sleep,
// as processes of one machine share its cores.
class MpiPause {
 public:
  // CheckStop's error, which is asked from time to time.
  Status operator()();

 private:
  int64_t turns_ = 0;
};

}  // namespace headrace::distributed
