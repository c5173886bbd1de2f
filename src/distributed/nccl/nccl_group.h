// One member's end of a communicator of NCCL: a GPU, a stream and memory there.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "distributed/nccl/nccl_library.h"
#include "ops/collective/collective.h"

namespace headrace::distributed {

// For one thread at a time.
class NcclGroup {
 public:
  struct Options {
    std::shared_ptr<NcclLibrary> library;
    int gpu = 0, rank = 0, size = 0;
    std::string id;
    // Why nothing need be waited for any more, of the group.
    std::function<Status()> over;
  };
  // How long others are waited for, and what is said where they do not come.
  struct Patience {
    std::chrono::milliseconds time{0};
    std::function<Status(std::chrono::duration<double> waited)> late;
  };

  // Waits for all members to do the same.
  static StatusOr<std::unique_ptr<NcclGroup>> Make(Options options,
                                                   const Patience& patience);
  ~NcclGroup();

  // The tensors go to the GPU, and what comes of them back. `source`: the rank
  // that gives, of a broadcast.
  StatusOr<Tensor> Run(const CollectiveCall& call, int source,
                       const Patience& patience);

 private:
  struct Room {
    NcclLibrary::Memory memory = 0;
    size_t bytes = 0;
  };

  explicit NcclGroup(Options options) : options_(std::move(options)) {}
  Status Start(const CollectiveCall& call, int source, size_t in, size_t out);
  Status Reserve(Room* room, size_t bytes);
  // Until `done` says so.
  Status Await(const std::function<StatusOr<bool>()>& done,
               const Patience& patience);

  const Options options_;
  NcclLibrary::Communicator communicator_ = nullptr;
  NcclLibrary::Stream stream_ = nullptr;
  Room from_, to_;
};

}  // namespace headrace::distributed
