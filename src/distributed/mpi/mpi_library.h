// An MPI library, loaded when it is first asked for: neither its headers nor
// the library itself is needed to build. Two ABIs are known, Open MPI's and
// that of MPICH, which Intel MPI and MVAPICH have, too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace headrace::distributed {

// What is asked of MPI, about a copy of its world that nobody else uses. Not
// thread-safe, unless MPI was begun so; each call returns at once but Begin and
// End, which wait for all processes of the job.
class MpiLibrary {
 public:
  // Levels of thread support, which both ABIs number alike.
  enum Threads { kSingle = 0, kFunneled = 1, kSerialized = 2, kMultiple = 3 };
  // Of a communicator or a message under way, as the library has it.
  using Handle = uintptr_t;
  struct Found {
    int source = 0, tag = 0;
    int64_t bytes = 0;
  };
  static constexpr int kAnySource = -1;

  virtual ~MpiLibrary() = default;

  // "Open MPI v4.1.4, ...", its first line.
  virtual std::string Version() = 0;
  // Whether the program has begun MPI, or ended it.
  virtual bool Begun() = 0;
  virtual bool Ended() = 0;
  virtual Status Begin(Threads* provided) = 0;
  virtual StatusOr<Threads> ThreadsOf() = 0;
  virtual Status End() = 0;
  // `ends` is called when MPI begins to end, whoever ends it, on that thread.
  virtual Status AtEnd(std::function<void()> ends) = 0;

  // Begins to copy the world, as all processes do. What it returns is asked
  // until it says true: then *copy counts.
  using Copying = std::function<StatusOr<bool>(Handle* copy)>;
  virtual StatusOr<Copying> CopyWorld() = 0;
  // Errors of calls about it are returned from now on, and end no process.
  virtual Status ReturnErrors(Handle world) = 0;
  virtual Status RankAndSize(Handle world, int* rank, int* size) = 0;
  // The memory is MPI's until the request is done.
  virtual StatusOr<Handle> Send(Handle world, int to, int tag, const void* data,
                                int bytes) = 0;
  virtual StatusOr<Handle> Receive(Handle world, int from, int tag, void* data,
                                   int bytes) = 0;
  // Whether a message is there to be received.
  virtual StatusOr<bool> Probe(Handle world, int from, int tag,
                               Found* found) = 0;
  virtual StatusOr<bool> Test(Handle* request) = 0;
};

// Loads the first of these that can be. FailedPrecondition, with what the
// loader says, where none can, or one has neither ABI.
StatusOr<std::unique_ptr<MpiLibrary>> LoadMpi(
    const std::vector<std::string>& places);

// Which libraries may be meant: the one that HEADRACE_MPI_LIBRARY names, else
// first those of the launcher whose variables the process has.
std::vector<std::string> MpiPlaces();
// The launcher's variable that this process has, of those in `looked_for`;
// empty: none.
std::string MpiLauncher(std::string* looked_for);

}  // namespace headrace::distributed
