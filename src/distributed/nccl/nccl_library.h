// NVIDIA's driver and NCCL, loaded when they are first asked for: neither their
// headers nor the libraries are needed to build.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace headrace::distributed {

// Thread-safe. Calls begin their work and do not wait for it, but for Use,
// which makes a GPU ready for a process once, and Abort.
class NcclLibrary {
 public:
  using Memory = uint64_t;  // of a GPU
  using Stream = void*;
  using Communicator = void*;

  // Where the driver and NCCL may be. FailedPrecondition, which says exactly
  // what is missing: a library, a function of one, a GPU.
  static StatusOr<std::shared_ptr<NcclLibrary>> Load(
      const std::vector<std::string>& driver_places,
      const std::vector<std::string>& nccl_places);
  // The process's own, from where HEADRACE_NCCL_LIBRARY says or the loader
  // finds it; once.
  static StatusOr<std::shared_ptr<NcclLibrary>> OfProcess();
  ~NcclLibrary();

  int gpus() const { return gpus_; }
  int version() const { return version_; }  // of NCCL: 22304 is 2.23.4

  // What the calling thread asks for from now on is of that GPU.
  Status Use(int gpu);
  Status Allocate(size_t bytes, Memory* memory);
  void Free(Memory memory);
  StatusOr<Stream> NewStream();
  void EndStream(Stream stream);
  Status CopyTo(Memory to, const void* from, size_t bytes, Stream stream);
  Status CopyFrom(void* to, Memory from, size_t bytes, Stream stream);
  // Whether all that was asked of it is done.
  StatusOr<bool> Done(Stream stream);

  // What members of a communicator are told, by one of them.
  StatusOr<std::string> NewId();
  Status Join(int size, const std::string& id, int rank,
              Communicator* communicator);
  // Whether what was asked of it has begun; its error where it failed.
  StatusOr<bool> Ready(Communicator communicator);
  // Ends it, and what is under way in it.
  void Abort(Communicator communicator);

  // Of `count` elements that each member brings, or with a scatter gets.
  Status AllReduce(Memory from, Memory to, size_t count, DType dtype,
                   const std::string& op, Communicator c, Stream stream);
  Status ReduceScatter(Memory from, Memory to, size_t count, DType dtype,
                       const std::string& op, Communicator c, Stream stream);
  Status AllGather(Memory from, Memory to, size_t bytes, Communicator c,
                   Stream stream);
  Status Broadcast(Memory from, Memory to, size_t bytes, int source,
                   Communicator c, Stream stream);

 private:
  struct Functions;

  explicit NcclLibrary(std::unique_ptr<Functions> functions);
  Status Cuda(const char* function, int code) const;
  Status Nccl(const char* function, int code) const;

  const std::unique_ptr<Functions> f_;
  int gpus_ = 0, version_ = 0;
  Mutex mutex_;
  std::vector<void*> contexts_ ABSL_GUARDED_BY(mutex_);  // by GPU; null: none
};

}  // namespace headrace::distributed
